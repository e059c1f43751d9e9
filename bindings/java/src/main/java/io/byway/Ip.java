package io.byway;

import java.net.Inet4Address;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteOrder;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/** Addresses on their way across: {@code byway_ip} after {@code byway_ip}; and what is asked about their texts. */
public final class Ip {
    static final int SIZE = Abi.IP;
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.nativeOrder());

    private Ip() {}

    /**
     * Reads a literal, with or without brackets and zone; asks no resolver.
     *
     * @throws BywayException.Argument when it is none
     */
    public static InetAddress parse(String text) {
        Library.load();
        return unpack(parse(Texts.utf8(text, "text")), 0);
    }

    /** The text byway shows for an address. */
    public static String text(InetAddress address) {
        Library.load();
        return Texts.of(text(pack(List.of(address))));
    }

    /** Interleaves families as RFC 8305 says: {@code count} of the first family, then one of the other, and so on. */
    public static List<InetAddress> order(Collection<InetAddress> addresses, FirstFamily first, int count) {
        Library.load();
        return unpackAll(order(pack(addresses), first.number(), count));
    }

    static byte[] pack(Collection<? extends InetAddress> addresses) {
        byte[] packed = new byte[addresses.size() * SIZE];
        int at = 0;
        for (InetAddress address : addresses) {
            put(packed, at, address);
            at += SIZE;
        }
        return packed;
    }

    static byte[] packOrNull(InetAddress address) {
        return address == null ? null : pack(List.of(address));
    }

    private static void put(byte[] packed, int at, InetAddress address) {
        byte[] raw = address.getAddress();
        System.arraycopy(raw, 0, packed, at, raw.length);
        packed[at + Abi.IP_FAMILY] = (byte) (raw.length == 4 ? 4 : 6);
        if (address instanceof Inet6Address) {
            INT.set(packed, at + Abi.IP_SCOPE_ID, ((Inet6Address) address).getScopeId());
        }
    }

    static List<InetAddress> unpackAll(byte[] packed) {
        List<InetAddress> addresses = new ArrayList<>(packed.length / SIZE);
        for (int at = 0; at + SIZE <= packed.length; at += SIZE) {
            addresses.add(unpack(packed, at));
        }
        return addresses;
    }

    /** Null for "none". */
    static InetAddress unpack(byte[] packed, int at) {
        return unpack(packed, at, null);
    }

    /** With the name it was found under, so that {@link InetAddress#getHostName} asks nobody. */
    static InetAddress unpack(byte[] packed, int at, String host) {
        try {
            switch (packed[at + Abi.IP_FAMILY]) {
                case 4:
                    byte[] four = new byte[4];
                    System.arraycopy(packed, at, four, 0, 4);
                    return host == null ? Inet4Address.getByAddress(four) : InetAddress.getByAddress(host, four);
                case 6:
                    byte[] sixteen = new byte[16];
                    System.arraycopy(packed, at, sixteen, 0, 16);
                    int scope = (int) INT.get(packed, at + Abi.IP_SCOPE_ID);
                    return scope == 0
                            ? Inet6Address.getByAddress(host, sixteen, -1)
                            : Inet6Address.getByAddress(host, sixteen, scope);
                default:
                    return null;
            }
        } catch (UnknownHostException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static native byte[] parse(byte[] text);

    private static native byte[] text(byte[] packed);

    private static native byte[] order(byte[] packed, int firstFamily, int firstFamilyCount);
}
