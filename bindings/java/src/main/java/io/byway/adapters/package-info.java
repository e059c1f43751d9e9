/**
 * Other libraries' seams, both ways: byway's proxy selectors and resolvers where {@link java.net.ProxySelector} and
 * {@code okhttp3.Dns} are wanted, and theirs where byway wants a callback.
 */
package io.byway.adapters;
