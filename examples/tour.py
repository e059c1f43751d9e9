"""A tour of connection routing in Python, on local sockets: names of one's own, a proxy that is down and one that works,
what is remembered of it, and the explanation of all that.

    PYTHONPATH=bindings/python/src BYWAY_LIBRARY=target/release/libbyway.so python3 examples/tour.py
"""
import socket
import threading

import byway


def serve(listener, answer):
    """Answers every connection with what `answer` makes of its first bytes."""
    def run():
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            with accepted:
                answer(accepted)

    threading.Thread(target=run, daemon=True).start()


def hello(accepted):
    accepted.recv(4096)
    accepted.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n")


def listener_on(host):
    return socket.create_server((host, 0))


def main():
    engine = byway.Engine()  # one per client; remembers what failed, is used from every thread

    # Names are resolved by whom you like: here by a table, and a listener hears how it goes.
    web = listener_on("127.0.0.1")
    serve(web, hello)
    port = web.getsockname()[1]
    dns = byway.Dns.hosts(engine, "127.0.0.2 web.example\n127.0.0.1 web.example\n")
    engine.add_listener(lambda event: print("   ", event.kind.name, event.subject or event.route or event.proxies[0]))

    print("A connection: nobody listens on the first address.")
    address = byway.Address(engine, "web.example", port, dns=dns)
    opened, route = byway.connect(address, 10)
    with opened:
        opened.sendall(b"GET / HTTP/1.1\r\nHost: web.example\r\n\r\n")
        print("   ", opened.recv(4096).split(b"\r\n\r\n")[1].decode().strip(), "over", route)

    print("The next selection knows which address failed:")
    for selection in byway.Selector(address):
        print("   ", list(selection))

    print("Proxies: one is down, the other is chosen next; the failure is told to whoever chose.")
    down = listener_on("127.0.0.1")
    down_port = down.getsockname()[1]
    down.close()
    proxies = [byway.Proxy(byway.ProxyKind.HTTP, "127.0.0.1", one) for one in (down_port, port)]
    chooser = byway.ProxySelector(
        engine, lambda uri: proxies, lambda uri, route, failure: print("    told:", failure.name, "of", uri)
    )
    address = byway.Address(engine, "origin.example", 443, tls=True, proxy_selector=chooser)
    opened, route = byway.connect(address, 10)
    opened.close()
    print("    connected through", route.proxy)

    print("And why:")
    selector = byway.Selector(address)
    selector.next()
    for line in selector.explain().splitlines():
        print("   ", line)
    engine.close()
    web.close()


if __name__ == "__main__":
    main()
