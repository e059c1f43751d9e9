package io.byway;

/** What a host knows of a connected peer, for {@link Route#coalesces}. */
public final class Peer {
    int flags;

    /** HTTP/2 or newer: many exchanges at once. */
    public Peer multiplexed(boolean on) {
        flags = on ? flags | Abi.PEER_MULTIPLEXED : flags & ~Abi.PEER_MULTIPLEXED;
        return this;
    }

    /** Host names are verified by the default rules, not by the host's own. */
    public Peer defaultVerification(boolean on) {
        flags = on ? flags | Abi.PEER_DEFAULT_VERIFICATION : flags & ~Abi.PEER_DEFAULT_VERIFICATION;
        return this;
    }

    /** The certificate covers the wanted host. */
    public Peer certificateCoversHost(boolean on) {
        flags = on ? flags | Abi.PEER_CERTIFICATE_COVERS_HOST : flags & ~Abi.PEER_CERTIFICATE_COVERS_HOST;
        return this;
    }

    /** Pins for the wanted host hold, or there are none. */
    public Peer pinsHold(boolean on) {
        flags = on ? flags | Abi.PEER_PINS_HOLD : flags & ~Abi.PEER_PINS_HOLD;
        return this;
    }

    /** The peer answered 421 to a coalesced request before. */
    public Peer refusedBefore(boolean on) {
        flags = on ? flags | Abi.PEER_REFUSED_BEFORE : flags & ~Abi.PEER_REFUSED_BEFORE;
        return this;
    }
}
