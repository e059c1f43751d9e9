package io.byway;

/** Why the host could not use a socket. */
public enum Resume {
    /** The host's TLS failed for another reason than a certificate: the route is put behind the others. */
    TLS(Abi.RESUME_TLS),

    /** The certificate was not accepted: nobody is to blame for it. */
    CERTIFICATE(Abi.RESUME_CERTIFICATE),

    /** The connection was closed or broke. */
    CLOSED(Abi.RESUME_CLOSED);

    private static final Resume[] ALL = values();

    private final int number;

    Resume(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }

    static Resume of(int number) {
        for (Resume one : ALL) {
            if (one.number == number) {
                return one;
            }
        }
        throw new IllegalArgumentException("no Resume has number " + number);
    }
}
