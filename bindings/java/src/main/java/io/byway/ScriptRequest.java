package io.byway;

/** A script that is to be fetched, and the place for it. {@link #later} keeps it beyond the callback. */
public final class ScriptRequest {
    /** A host that fetches scripts. */
    @FunctionalInterface
    public interface Fetcher {
        /**
         * Wants a script: {@link ScriptRequest#finish} hands it in, {@link ScriptRequest#later} says that it comes
         * afterwards, from any thread. What is thrown fails the questions that wait for it.
         */
        void fetch(ScriptRequest request) throws Exception;
    }

    private final long pointer;
    private final String url;
    private volatile Request.Kept kept;
    private volatile boolean lent = true;

    private ScriptRequest(long pointer, String url) {
        this.pointer = pointer;
        this.url = url;
    }

    /** Where it is, empty when it is to be discovered (WPAD). */
    public String url() {
        return url;
    }

    /** Says that {@link #finish} or {@link #fail} comes after the callback has returned, from any thread. */
    public void later() {
        if (kept == null) {
            kept = new Request.Kept(retain(enter()), ScriptRequest::release);
        }
    }

    /** The script; {@code charset} is what was said where it was fetched, null for nothing. */
    public void finish(byte[] source, String charset) {
        byte[] name = Texts.utf8OrNull(charset, "charset");
        long selector = enter();
        try {
            ProxySelector.setScript(selector, source, name);
        } finally {
            exit();
        }
    }

    /** The script. */
    public void finish(String source) {
        finish(Texts.utf8(source, "source"), "utf-8");
    }

    /** It could not be fetched, for this reason, which becomes the cause of what the callers see. */
    public void fail(Throwable reason) {
        byte[] message = String.valueOf(reason).getBytes(java.nio.charset.StandardCharsets.UTF_8);
        long selector = enter();
        try {
            scriptFailed(selector, Errors.statusOf(reason), Errors.keep(reason), message);
        } finally {
            exit();
        }
    }

    private long enter() {
        Request.Kept mine = kept;
        if (mine != null) {
            return mine.enter();
        }
        if (!lent) {
            throw Errors.of(Abi.E_BAD_HANDLE, "the callback has returned and later() was not called", "request");
        }
        return pointer;
    }

    private void exit() {
        Request.Kept mine = kept;
        if (mine != null) {
            mine.exit();
        }
    }

    /** Where natives call. */
    static final class Callbacks {
        private Callbacks() {}

        static int fetch(Fetcher fetcher, long selector, byte[] url) {
            ScriptRequest request = new ScriptRequest(selector, Texts.of(url));
            try {
                fetcher.fetch(request);
                return request.kept == null ? Abi.OK : Abi.PENDING;
            } catch (Throwable thrown) {
                try {
                    request.fail(thrown);
                } catch (Throwable late) {
                    Errors.report(thrown);
                }
                return request.kept == null ? Abi.OK : Abi.PENDING;
            } finally {
                request.lent = false;
            }
        }
    }

    private static native void scriptFailed(long selector, int status, long hostCode, byte[] message);

    private static native long retain(long selector);

    private static native void release(long selector);
}
