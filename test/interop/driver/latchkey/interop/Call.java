package latchkey.interop;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/** One line of input. Several names, for locks that are made of others, are separated by commas. */
record Call(String number, String worker, String operation, String kind, List<String> names, List<String> arguments) {
  static Call parse(String line) {
    String[] words = line.split(" ");
    List<String> names = Arrays.stream(words[4].split(","))
        .map(name -> URLDecoder.decode(name, StandardCharsets.UTF_8))
        .toList();
    return new Call(words[0], words[1], words[2], words[3], names, Arrays.asList(words).subList(5, words.length));
  }

  String name() {
    return names.get(0);
  }

  long number(int argument) {
    return Long.parseLong(arguments.get(argument));
  }

  boolean has(int argument) {
    return argument < arguments.size();
  }
}
