// Command redsync URI does the work of scripts/bench peers with redsync; with "network" behind the URI, that of the group
// network. It prints one line of JSON.
package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/redigo"
	client "github.com/gomodule/redigo/redis"
)

const lease = 30 * time.Second

// The callers have them in turn.
var lockers []*redsync.Redsync

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// mutex waits as long as it takes, with the pauses that redsync chooses.
func mutex(name string, caller int) *redsync.Mutex {
	return lockers[caller%len(lockers)].NewMutex(name, redsync.WithExpiry(lease), redsync.WithTries(1<<30))
}

func turn(lock *redsync.Mutex) {
	must(lock.Lock())
}

func done(lock *redsync.Mutex) {
	_, err := lock.Unlock()
	must(err)
}

func pair(pairs int) float64 {
	lock := mutex("bench:peer:pair", 0)
	var times []float64
	for i := 0; i < pairs; i++ {
		began := time.Now()
		turn(lock)
		done(lock)
		times = append(times, float64(time.Since(began).Nanoseconds())*1e-3)
	}
	sort.Float64s(times)
	return times[len(times)/2]
}

func callers(count, locks int, seconds float64) (float64, float64) {
	counts := make([]float64, count)
	var all sync.WaitGroup
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	for i := 0; i < count; i++ {
		all.Add(1)
		go func(me int) {
			defer all.Done()
			lock := mutex(fmt.Sprintf("bench:peer:%d:%d", locks, me%locks), me)
			for time.Now().Before(end) {
				turn(lock)
				if time.Now().Before(end) {
					counts[me]++
				}
				done(lock)
			}
		}(i)
	}
	all.Wait()
	sum, squares := 0.0, 0.0
	for _, one := range counts {
		sum += one
		squares += one * one
	}
	return sum / seconds, sum * sum / (float64(count) * squares)
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, one := range info.Deps {
			if strings.HasPrefix(one.Path, "github.com/go-redsync/") {
				return one.Version
			}
		}
	}
	return "v4"
}

func connect() {
	pool := &client.Pool{MaxIdle: 64, MaxActive: 64, Wait: true, Dial: func() (client.Conn, error) {
		return client.DialURL(os.Args[1])
	}}
	lockers = append(lockers, redsync.New(redigo.NewPool(pool)))
}

func main() {
	connect()
	network := len(os.Args) > 2 && os.Args[2] == "network"
	pairs := 20000
	if network {
		pairs = 1000
	}
	p := pair(pairs)
	callers(1000, 1000, 1)
	crowd, _ := callers(1000, 1000, 5)
	one, jain := callers(8, 1, 5)
	if network {
		connect()
		two, _ := callers(2, 1, 5)
		fmt.Printf(`{"name": "redsync %s", "work": {"pair": %.2f, "crowd": %.0f, "one_lock": %.1f, "two_clients": %.1f}}`+"\n",
			version(), p, crowd, one, two)
		return
	}
	fmt.Printf(`{"name": "redsync %s", "crowd_of": "1,000 goroutines", "work": `+
		`{"pair": %.2f, "crowd": %.0f, "one_lock": %.1f, "one_lock_jain": %.4f}}`+"\n", version(), p, crowd, one, jain)
}
