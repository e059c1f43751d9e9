package io.byway.conform;

import com.sun.jna.Native;

/** Functions of the system that Java has no words for, by their own names; calls act on the calling thread. */
final class Libc {
    static {
        Native.register(Libc.class, "c");
    }

    static final int AF_INET = 2;
    static final int AF_INET6 = 10;
    static final int SOCK_STREAM = 1;
    static final int SOCK_DGRAM = 2;
    static final int SOL_SOCKET = 1;
    static final int SO_REUSEADDR = 2;
    static final int SHUT_WR = 1;
    static final int RLIMIT_NOFILE = 7;
    static final int CLONE_NEWNET = 0x4000_0000;
    static final short POLLIN = 1;
    static final short POLLOUT = 4;

    private Libc() {}

    static native int unshare(int flags);

    static native int socket(int family, int type, int protocol);

    static native int ioctl(int fd, long request, byte[] argument);

    static native int if_nametoindex(String name);

    static native int setsockopt(int fd, int level, int option, int[] value, int size);

    static native int bind(int fd, byte[] at, int size);

    static native int listen(int fd, int backlog);

    static native int getsockname(int fd, byte[] at, int[] size);

    static native int accept(int fd, byte[] from, int[] size);

    static native long read(int fd, byte[] into, long size);

    static native long write(int fd, byte[] from, long size);

    static native int shutdown(int fd, int how);

    static native int close(int fd);

    /** Two numbers: the limit in force, and how far it can be raised. */
    static native int getrlimit(int resource, long[] limit);

    static native int setrlimit(int resource, long[] limit);
}
