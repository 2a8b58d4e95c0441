// Command redsync URI holds locks with redsync as it is told, in the lines of Driver.java:
//
//	NUMBER WORKER OPERATION plain_lock NAME ARGUMENT...
//
// Operations: `acquire WAIT_MS LEASE_MS`, `extend LEASE_MS`, `release`. The process ends with its input.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/redigo"
	client "github.com/gomodule/redigo/redis"
)

// call is one line of input.
type call struct {
	number, operation, name string
	arguments               []string
}

func (c call) duration(argument int) time.Duration {
	ms, err := strconv.Atoi(c.arguments[argument])
	if err != nil {
		panic(err)
	}
	return time.Duration(ms) * time.Millisecond
}

// worker makes its calls one after the other.
type worker struct {
	sync  *redsync.Redsync
	held  map[string]*redsync.Mutex
	calls chan call
}

func newWorker(sync *redsync.Redsync, say chan<- string) *worker {
	w := &worker{sync, map[string]*redsync.Mutex{}, make(chan call, 100)}
	go func() {
		for one := range w.calls {
			result, err := w.make(one)
			if err != nil {
				result = "failed " + strings.ReplaceAll(err.Error(), "\n", " ")
			} else {
				result = "ok " + result
			}
			say <- fmt.Sprintf("%s %d %s", one.number, monotonic(), result)
		}
	}()
	return w
}

func (w *worker) make(c call) (string, error) {
	switch c.operation {
	case "acquire":
		return w.acquire(c)
	case "extend":
		mutex := w.held[c.name]
		redsync.WithExpiry(c.duration(0)).Apply(mutex)
		extended, err := mutex.Extend()
		return strconv.FormatBool(extended), err
	case "release":
		released, err := w.held[c.name].Unlock()
		if err == nil && !released {
			err = errors.New("not held")
		}
		return "released", err
	}
	return "", fmt.Errorf("no such operation: %s", c.operation)
}

func (w *worker) acquire(c call) (string, error) {
	mutex := w.sync.NewMutex(c.name, redsync.WithExpiry(c.duration(1)), redsync.WithTries(1_000_000))
	var err error
	if wait := c.duration(0); wait > 0 {
		limited, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		err = mutex.LockContext(limited)
	} else {
		err = mutex.TryLock()
	}
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) || errors.Is(err, context.DeadlineExceeded) {
		return "false", nil
	}
	if err == nil {
		w.held[c.name] = mutex
	}
	return "true", err
}

// monotonic is the clock that all processes of the machine share.
func monotonic() int64 {
	const clockMonotonic = 1
	var now syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if strings.HasPrefix(module.Path, "github.com/go-redsync/redsync/") {
			return module.Version
		}
	}
	return "unknown"
}

func main() {
	pool := &client.Pool{MaxIdle: 8, Dial: func() (client.Conn, error) { return client.DialURL(os.Args[1]) }}
	sync := redsync.New(redigo.NewPool(pool))
	say := make(chan string)
	go func() {
		for line := range say {
			fmt.Println(line)
		}
	}()
	say <- "ready redsync-" + version()
	workers := map[string]*worker{}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		name, err := url.PathUnescape(words[4])
		if err != nil {
			panic(err)
		}
		if workers[words[1]] == nil {
			workers[words[1]] = newWorker(sync, say)
		}
		workers[words[1]].calls <- call{words[0], words[2], name, words[5:]}
	}
}
