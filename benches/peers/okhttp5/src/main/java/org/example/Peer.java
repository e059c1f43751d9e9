package org.example;

import okhttp3.Address;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.internal.connection.RealCall;
import okhttp3.internal.connection.RouteDatabase;
import okhttp3.internal.connection.RouteSelector;

/** OkHttp 5: what its own {@code ExchangeFinder} does with a call. */
final class Peer {
    private final RealCall call =
            (RealCall) new OkHttpClient().newCall(new Request.Builder().url("https://a.example/").build());

    RouteSelector selector(Address address, RouteDatabase failed) {
        return new RouteSelector(address, failed, call, true);
    }
}
