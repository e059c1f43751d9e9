package org.example;

import okhttp3.Address;
import okhttp3.Call;
import okhttp3.EventListener;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.internal.connection.RouteDatabase;
import okhttp3.internal.connection.RouteSelector;

/** OkHttp 4: what its own {@code ExchangeFinder} does with a call. */
final class Peer {
    private final Call call = new OkHttpClient().newCall(new Request.Builder().url("https://a.example/").build());

    RouteSelector selector(Address address, RouteDatabase failed) {
        return new RouteSelector(address, failed, call, EventListener.NONE);
    }
}
