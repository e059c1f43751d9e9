package io.byway;

import java.util.EnumSet;
import java.util.Set;

/** Who is told of a failure, and what else it means. */
public enum Tell {
    /** A connect-failed event is sent. */
    FAILED_EVENT(Abi.TELL_FAILED_EVENT),

    /** A connect-canceled event is sent. */
    CANCELED_EVENT(Abi.TELL_CANCELED_EVENT),

    /** The proxy selector hears of it. */
    PROXY_SELECTOR(Abi.TELL_PROXY_SELECTOR),

    /** The route goes into the route database. */
    DATABASE(Abi.TELL_DATABASE),

    /** The next route is tried. */
    NEXT_ROUTE(Abi.TELL_NEXT_ROUTE),

    /** The connection takes no new exchanges. */
    NO_NEW_EXCHANGES(Abi.TELL_NO_NEW_EXCHANGES),

    /** One more failure of the connection's route. */
    ROUTE_FAILURE(Abi.TELL_ROUTE_FAILURE);

    private final int bit;

    Tell(int bit) {
        this.bit = bit;
    }

    /** The bit of the C header. */
    public int number() {
        return bit;
    }

    static Set<Tell> of(int bits) {
        Set<Tell> told = EnumSet.noneOf(Tell.class);
        for (Tell one : values()) {
            if ((bits & one.bit) != 0) {
                told.add(one);
            }
        }
        return told;
    }
}
