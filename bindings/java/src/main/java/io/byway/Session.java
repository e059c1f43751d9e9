package io.byway;

import java.lang.ref.Reference;
import java.util.Objects;

/**
 * The fast way for one thread that routes again and again: pins the world, list and rules, that it used last, so that a
 * result is a view and nothing is copied.
 *
 * <p>Belongs to the thread that made it until another one calls {@link #adopt}; elsewhere calls throw {@link
 * BywayException.Handle}. A virtual thread may change its carrier meanwhile. {@link #close} is legal from any thread.
 */
public final class Session extends Handle {
    /** What {@code route} answers where a carrier was changed. */
    private static final long BUSY = 1;

    /**
     * The session's last result, valid until its next call: there is one object per session, which shows whatever was
     * asked last. Belongs to the session's thread.
     */
    public static final class View {
        private final Session session;
        private long choice;

        private View(Session session) {
            this.session = session;
        }

        /** How many providers may serve the call. */
        public int size() {
            session.look();
            try {
                return choice == 0 ? 0 : Choice.size(choice);
            } finally {
                session.exit();
            }
        }

        /** True when none may. */
        public boolean isEmpty() {
            return size() == 0;
        }

        /** The tag of one of them, in list order, from 0. */
        public long tag(int index) {
            if (index < 0) {
                Objects.checkIndex(index, size());
            }
            session.look();
            try {
                return Choice.tag(choice, index);
            } finally {
                session.exit();
            }
        }

        /** All tags, in one crossing. */
        public long[] tags() {
            session.look();
            try {
                return choice == 0 ? new long[0] : Choice.tags(choice);
            } finally {
                session.exit();
            }
        }

        /** Copies as many tags as fit, and says how many there are. */
        public int tags(long[] into) {
            Objects.requireNonNull(into, "into");
            session.look();
            try {
                return choice == 0 ? 0 : Choice.tagsInto(choice, into);
            } finally {
                session.exit();
            }
        }

        /** The list they were chosen from. */
        public Invokers invokers() {
            session.look();
            try {
                return new Invokers(Choice.invokers(choice));
            } finally {
                session.exit();
            }
        }

        /** Number of the world that answered. */
        public long generation() {
            session.look();
            try {
                return choice == 0 ? 0 : Choice.generation(choice);
            } finally {
                session.exit();
            }
        }

        /** Name of the router that left nobody; null when somebody is left, or nobody was there to begin with. */
        public String emptiedBy() {
            session.look();
            try {
                byte[] name = choice == 0 ? null : Choice.emptiedBy(choice);
                return name == null ? null : Texts.of(name);
            } finally {
                session.exit();
            }
        }
    }

    private final Chain chain;
    private final View view = new View(this);
    private final long pointer;
    private volatile Thread owner = Thread.currentThread();
    private volatile boolean closing;

    /** The owner while this is open, otherwise null. */
    private volatile Thread open = owner;

    /** A session of the calling thread, with a random stream of its own. */
    public Session(Chain chain) {
        this(chain, made(chain));
    }

    private Session(Chain chain, long pointer) {
        super(pointer, Session::free);
        this.chain = chain;
        this.pointer = pointer;
    }

    private static long made(Chain chain) {
        long self = Objects.requireNonNull(chain, "chain").enter();
        try {
            return make(self);
        } finally {
            chain.exit();
        }
    }

    /** The chain it routes for. */
    public Chain chain() {
        return chain;
    }

    /**
     * Routes a call: one crossing, and for a class of calls seen before no copy, no allocation, no lock. An empty result
     * is no error, see {@link View#emptiedBy}.
     */
    public View route(Invocation invocation) {
        // Neither handle is held here: both belong to this thread, the engine refuses what another thread has closed
        // meanwhile, and this thread, being here, cannot have made another object in its place.
        Thread here = Thread.currentThread();
        if (open == here && invocation.ready == here) {
            long choice = route(pointer, invocation.pointer);
            Reference.reachabilityFence(this);
            Reference.reachabilityFence(invocation);
            if (choice != BUSY) {
                view.choice = choice;
                return view;
            }
        }
        return routeFilled(invocation);
    }

    private boolean isReady(Invocation invocation) {
        Thread here = Thread.currentThread();
        return open == here && invocation.ready == here;
    }

    private View routeFilled(Invocation invocation) {
        long self = asking(invocation);
        try {
            long asked = invocation.enter();
            try {
                long choice = routeFilled(self, asked, invocation.address(), invocation.news());
                if (choice == BUSY) {
                    moved(self, invocation);
                    choice = routeFilled(self, asked, invocation.address(), invocation.news());
                }
                if (choice == BUSY) {
                    throw Errors.of(Abi.E_BUSY, "the session is in a call", "self");
                }
                invocation.wasRead();
                view.choice = choice;
                return view;
            } finally {
                invocation.exit();
            }
        } finally {
            exit();
        }
    }

    /** Routes a call; the tags of the providers that may serve it, in one crossing. */
    public long[] tags(Invocation invocation) {
        // As in `route`, without holding either.
        if (isReady(invocation)) {
            try {
                return tags(pointer, invocation.pointer, 0, -1);
            } catch (BywayException.Handle busy) {
                unlessMoved(busy);
            } finally {
                Reference.reachabilityFence(this);
                Reference.reachabilityFence(invocation);
            }
        }
        long self = asking(invocation);
        try {
            long asked = invocation.enter();
            try {
                long[] tags;
                try {
                    tags = tags(self, asked, invocation.address(), invocation.news());
                } catch (BywayException.Handle busy) {
                    moved(self, invocation, busy);
                    tags = tags(self, asked, invocation.address(), invocation.news());
                }
                invocation.wasRead();
                return tags;
            } finally {
                invocation.exit();
            }
        } finally {
            exit();
        }
    }

    /** Routes a call, copies as many tags as fit, and says how many there are. */
    public int tags(Invocation invocation, long[] into) {
        Objects.requireNonNull(into, "into");
        if (isReady(invocation)) {
            try {
                return tagsInto(pointer, invocation.pointer, 0, -1, into);
            } catch (BywayException.Handle busy) {
                unlessMoved(busy);
            } finally {
                Reference.reachabilityFence(this);
                Reference.reachabilityFence(invocation);
            }
        }
        long self = asking(invocation);
        try {
            long asked = invocation.enter();
            try {
                int total;
                try {
                    total = tagsInto(self, asked, invocation.address(), invocation.news(), into);
                } catch (BywayException.Handle busy) {
                    moved(self, invocation, busy);
                    total = tagsInto(self, asked, invocation.address(), invocation.news(), into);
                }
                invocation.wasRead();
                return total;
            } finally {
                invocation.exit();
            }
        } finally {
            exit();
        }
    }

    /** Routes a call and picks one provider, as {@link Chain#pick(Invocation)}. */
    public Picked pick(Invocation invocation) {
        return pick(invocation, PickOptions.DEFAULT);
    }

    /** Routes a call and picks one provider, drawn from the session's own stream. */
    public Picked pick(Invocation invocation, PickOptions options) {
        long self = asking(invocation);
        try {
            long asked = invocation.enter();
            try {
                long[] picked = new long[4];
                try {
                    pick(self, asked, invocation, options, picked);
                } catch (BywayException.Handle busy) {
                    moved(self, invocation, busy);
                    pick(self, asked, invocation, options, picked);
                }
                invocation.wasRead();
                return new Picked(picked);
            } finally {
                invocation.exit();
            }
        } finally {
            exit();
        }
    }

    private static void pick(long self, long asked, Invocation invocation, PickOptions options, long[] picked) {
        pick(
                self,
                asked,
                invocation.address(),
                invocation.news(),
                options.balance,
                options.flags,
                options.exclude,
                options.available,
                options.availableList,
                picked);
    }

    /** Makes the calling thread the owner. */
    public void adopt() {
        long self = enter();
        try {
            adopt(self);
            owner = Thread.currentThread();
            open = owner;
            if (closing) {
                open = null;
            }
        } finally {
            exit();
        }
    }

    /** Lets go of the world it pins, for a thread that will not route for a while; the view shows nothing then. */
    public void idle() {
        long self = enter();
        try {
            checkOwner();
            try {
                idle(self);
            } catch (BywayException.Handle busy) {
                adopt(self);
                idle(self);
            }
        } finally {
            exit();
        }
    }

    private void checkOwner() {
        if (owner != Thread.currentThread()) {
            throw Errors.of(Abi.E_BUSY, "the session belongs to another thread; adopt it first", "self");
        }
    }

    /** Enters for a call that this thread may make. */
    private long asking(Invocation invocation) {
        long self = enter();
        try {
            checkOwner();
            invocation.checkOwner();
            return self;
        } catch (Throwable thrown) {
            exit();
            throw thrown;
        }
    }

    /** Enters for a look at the view. */
    private void look() {
        enter();
        if (owner != Thread.currentThread()) {
            exit();
            checkOwner();
        }
    }

    /** What both sides know as this thread's does not belong to its carrier: makes it so. */
    private static void moved(long self, Invocation invocation) {
        adopt(self);
        invocation.readAgain();
    }

    private static void moved(long self, Invocation invocation, BywayException.Handle busy) {
        unlessMoved(busy);
        moved(self, invocation);
    }

    /** Goes on with what was thrown, unless it may come of another carrier. */
    private static void unlessMoved(BywayException.Handle busy) {
        // With a cause it is what a router says of something else.
        if (busy.code() != Abi.E_BUSY || busy.getCause() != null) {
            throw busy;
        }
    }

    @Override
    public void close() {
        closing = true;
        open = null;
        super.close();
    }

    private static native long make(long chain);

    private static native long route(long self, long invocation);

    private static native long routeFilled(long self, long invocation, long notes, int length);

    private static native long[] tags(long self, long invocation, long notes, int length);

    private static native int tagsInto(long self, long invocation, long notes, int length, long[] into);

    private static native void pick(
            long self,
            long invocation,
            long notes,
            int length,
            int balance,
            int flags,
            long[] exclude,
            long[] available,
            long availableList,
            long[] picked);

    private static native void adopt(long self);

    private static native void idle(long self);

    private static native void free(long self);
}
