package io.byway;

import java.util.AbstractList;
import java.util.Iterator;
import java.util.List;
import java.util.RandomAccess;

/**
 * Some routes to try, in order; the next selection's only when all of these have failed. All of them come in one
 * crossing; a {@link Route} is made when it is asked for. Immutable.
 */
public final class Selection extends Handle implements Iterable<Route> {
    private final byte[] records;
    private final Route[] routes;

    Selection(long pointer, Records buffer) {
        super(pointer, Selection::free);
        records = buffer.copy();
        routes = new Route[buffer.count()];
    }

    /** Number of routes, at least 1. */
    public int size() {
        return routes.length;
    }

    /** One route. */
    public Route get(int index) {
        Route route = routes[index];
        if (route == null) {
            route = new Route(this, records, index);
            routes[index] = route;
        }
        return route;
    }

    /** The routes, in order. */
    public List<Route> routes() {
        return new Routes();
    }

    @Override
    public Iterator<Route> iterator() {
        return routes().iterator();
    }

    /** A reference of its own to one route. */
    long at(int index) {
        long self = enter();
        try {
            synchronized (this) {
                return at(self, index);
            }
        } finally {
            exit();
        }
    }

    /** Routes that were handed out stay usable: they keep what is behind them until the collector takes the last one. */
    @Override
    public void close() {
        for (Route route : routes) {
            if (route != null && !route.isOnItsOwn()) {
                return;
            }
        }
        super.close();
    }

    private final class Routes extends AbstractList<Route> implements RandomAccess {
        @Override
        public Route get(int index) {
            return Selection.this.get(index);
        }

        @Override
        public int size() {
            return Selection.this.size();
        }
    }

    /** Ends a handle that found no object. */
    static void drop(long pointer) {
        free(pointer);
    }

    static native void records(long self, long buffer, int capacity);

    private static native long at(long self, int index);

    private static native void free(long self);
}
