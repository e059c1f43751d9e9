"""Calls HelloService with an ordinary HTTP client, and lets byway say where: caller.py <zookeeper>

Prints what caller.c prints: every 20 ms one line for hello and one for hello2, "<milliseconds> <method> <answer>".
"""
import http.client
import sys
import time
from urllib.parse import urlsplit

import byway

SERVICE = "org.example.HelloService"
# As Dubbo's consumers describe themselves: rules ask for interface, application, side.
CONSUMER = f"consumer://127.0.0.1/{SERVICE}?interface={SERVICE}&application=hello-python&side=consumer"


def http_call(url, method):
    """The answer of the provider with this URL; None when it does not answer."""
    at = urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=30)
    try:
        connection.request("POST", f"/{SERVICE}/{method}", '["world"]', {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read().decode()
        return text.strip('"') if response.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def call(chain, method):
    """Who does not answer is tried no more: the next one is, as Dubbo's fail-over does."""
    invocation, tried, outcome = byway.Invocation(method), [], "none"
    while len(tried) < 3:
        try:
            picked = chain.pick(invocation, exclude=tried)
        except byway.NoInvokerError:
            break
        began = time.monotonic()
        providers = chain.invokers
        try:
            answer = http_call(providers.url(providers.row_of(picked.tag)), method)
        except byway.BywayError:
            # It has left between the pick and the look.
            answer = None
        chain.pick_end(picked, answer is not None, time.monotonic() - began)
        if answer is not None:
            return answer
        outcome = "fail"
        tried.append(picked.tag)
    return outcome


def main():
    engine = byway.Engine()
    source = byway.Source.zookeeper(engine, sys.argv[1])
    chain = byway.Chain(engine, CONSUMER)
    # Rules, providers, overrides: from here on the chain follows all of it.
    chain.bind(source, 60)
    print("ready", flush=True)
    while True:
        for method in ("hello", "hello2"):
            answer = call(chain, method)
            print(int(time.time() * 1000), method, answer, flush=True)
        time.sleep(0.02)


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        pass
