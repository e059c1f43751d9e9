package org.example;

/** What the providers serve. Each answers with its own port. */
public interface HelloService {
    String hello(String name);

    String hello2(String name);
}
