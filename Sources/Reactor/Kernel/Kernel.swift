public import CLinux
import Glibc

/// The system calls that a loop makes, behind one seam.
///
/// Results follow the kernel's own convention: zero or more on success, `-errno` on failure, so that nothing is thrown or
/// allocated on the data path. A subclass may refuse, shorten or reset any call: the fault-injecting kernel of the tests does.
/// An instance belongs to one loop; its counter has one writer.
open class Kernel {
    /// System calls made through this seam since the start. Read by budgets in tests and by `/metrics`.
    public final var systemCalls: UInt64 = 0

    /// The real kernel; it keeps no state but the count.
    public init() {}

    /// Nanoseconds of `CLOCK_BOOTTIME`: it counts suspended time too, as token lifetimes need.
    open func now() -> UInt64 { cardea_boottime() }

    /// Milliseconds of the wall clock since 1970.
    open func wallMilliseconds() -> Int64 { cardea_wall_milliseconds() }

    open func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        systemCalls &+= 1
        let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
        return count >= 0 ? count : Int(-errno)
    }

    /// - Parameter more: the connection's end, or more output, follows at once. The kernel keeps an incomplete segment back until then,
    ///   so that both leave together (`MSG_MORE`).
    open func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, more: Bool = false) -> Int {
        systemCalls &+= 1
        let count = send(descriptor, bytes.baseAddress, bytes.count, Self.sendFlags(more: more))
        return count >= 0 ? count : Int(-errno)
    }

    open func write(_ descriptor: Int32, _ parts: UnsafeBufferPointer<iovec>, more: Bool = false) -> Int {
        systemCalls &+= 1
        var message = msghdr()
        message.msg_iov = UnsafeMutablePointer(mutating: parts.baseAddress)
        message.msg_iovlen = parts.count
        let count = sendmsg(descriptor, &message, Self.sendFlags(more: more))
        return count >= 0 ? count : Int(-errno)
    }

    private static func sendFlags(more: Bool) -> Int32 {
        Int32(MSG_NOSIGNAL) | (more ? Int32(MSG_MORE) : 0)
    }

    /// Whether `read`, or `accept` on a listening socket, would find something now: bytes, a connection, an end or an error.
    open func hasInput(_ descriptor: Int32) -> Bool {
        systemCalls &+= 1
        return cardea_has_input(descriptor) != 0
    }

    /// A non-blocking pipe, as large as `capacity` if the kernel allows that.
    open func makePipe(capacity: Int) -> PipePair? {
        systemCalls &+= 2
        var ends: (Int32, Int32) = (-1, -1)
        let granted = cardea_pipe(&ends.0, &ends.1, Int32(clamping: capacity))
        return granted > 0 ? PipePair(outlet: ends.0, inlet: ends.1, capacity: Int(granted)) : nil
    }

    /// Moves at most `count` bytes from one descriptor to the other, of which one is a pipe, without waiting and without copying.
    /// - Returns: 0 at the end of input.
    open func splice(_ from: Int32, to target: Int32, count: Int) -> Int {
        systemCalls &+= 1
        let moved = cardea_splice(from, target, count)
        return moved >= 0 ? moved : Int(-errno)
    }

    /// A non-blocking stream socket.
    open func socket(family: Int32) -> Int32 {
        systemCalls &+= 1
        let descriptor = cardea_stream_socket(family)
        return descriptor >= 0 ? descriptor : -errno
    }

    open func connect(_ descriptor: Int32, to address: SocketAddress) -> Int32 {
        systemCalls &+= 1
        return address.withStorage { storage, length in
            cardea_connect(descriptor, storage, length) == 0 ? 0 : -errno
        }
    }

    /// The pending error of a socket, zero when there is none (`SO_ERROR`).
    open func socketError(_ descriptor: Int32) -> Int32 {
        systemCalls &+= 1
        return cardea_socket_error(descriptor)
    }

    open func accept(_ descriptor: Int32, from address: inout sockaddr_storage, length: inout socklen_t) -> Int32 {
        systemCalls &+= 1
        length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let accepted = cardea_accept(descriptor, &address, &length)
        return accepted >= 0 ? accepted : -errno
    }

    open func shutdownWriting(_ descriptor: Int32) {
        systemCalls &+= 1
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    /// The coming `close` of a TCP connection resets it and sends nothing that still waits, so that its peer is told that it did not get all.
    open func resetOnClose(_ descriptor: Int32) {
        systemCalls &+= 1
        var linger = linger(l_onoff: 1, l_linger: 0)
        _ = setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
    }

    open func close(_ descriptor: Int32) {
        systemCalls &+= 1
        _ = Glibc.close(descriptor)
    }

    open func setOption(_ descriptor: Int32, level: Int32, option: Int32, value: Int32) {
        systemCalls &+= 1
        _ = cardea_set_option(descriptor, level, option, value)
    }

    open func setNoDelay(_ descriptor: Int32) {
        setOption(descriptor, level: Int32(IPPROTO_TCP), option: TCP_NODELAY, value: 1)
    }

    /// The user at the other end of a unix socket.
    open func peerUser(_ descriptor: Int32) -> UInt32? {
        systemCalls &+= 1
        let user = cardea_peer_user(descriptor)
        return user < 0 ? nil : UInt32(truncatingIfNeeded: user)
    }

    /// Where a connection was going before the kernel redirected it here: by conntrack for REDIRECT, by the socket's own address for TPROXY.
    open func originalDestination(_ descriptor: Int32) -> SocketAddress? {
        systemCalls &+= 1
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        guard cardea_original_destination(descriptor, &storage, &length) == 0 else { return nil }
        return SocketAddress(storage: storage, length: length)
    }

    /// Octets that were written and that the other end has not acknowledged, or not read where it is a unix socket; zero where the kernel
    /// cannot tell.
    open func unsentCount(_ descriptor: Int32) -> Int {
        systemCalls &+= 1
        return max(0, Int(cardea_unsent_count(descriptor)))
    }

    open func makeEpoll() -> Int32 {
        systemCalls &+= 1
        let descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        return descriptor >= 0 ? descriptor : -errno
    }

    open func watch(_ epoll: Int32, _ descriptor: Int32, events: UInt32, key: UInt64) -> Int32 {
        systemCalls &+= 1
        return cardea_epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, events, key) == 0 ? 0 : -errno
    }

    /// Changes what is reported of a descriptor that is watched already. What is true of it now is reported anew.
    open func rewatch(_ epoll: Int32, _ descriptor: Int32, events: UInt32, key: UInt64) {
        systemCalls &+= 1
        _ = cardea_epoll_ctl(epoll, EPOLL_CTL_MOD, descriptor, events, key)
    }

    open func unwatch(_ epoll: Int32, _ descriptor: Int32) {
        systemCalls &+= 1
        _ = cardea_epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, 0, 0)
    }

    /// Waits at most `milliseconds` (−1: until something happens).
    open func wait(_ epoll: Int32, into events: UnsafeMutableBufferPointer<epoll_event>, milliseconds: Int32) -> Int {
        systemCalls &+= 1
        let count = epoll_wait(epoll, events.baseAddress, Int32(events.count), milliseconds)
        return count >= 0 ? Int(count) : Int(-errno)
    }
}
