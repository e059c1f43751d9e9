package io.byway.dubbo;

/** What the test's providers serve; each answers with its own port. */
public interface HelloService {
    String hello(String name);

    String hello2(String name);
}
