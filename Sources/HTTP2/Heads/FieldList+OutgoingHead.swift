internal import CNghttp2
internal import HTTP1

// Heads that come as fields. What is no part of the program is copied by nghttp2 when the list is submitted, so the received bytes and
// `OutgoingHead.own` have to last until then.

/// The names of known fields, for nghttp2 to point at.
private enum KnownNames {
    nonisolated(unsafe) static let all: UnsafePointer<UnsafeRawBufferPointer> = {
        let names = KnownField.allCases.sorted { $0.rawValue < $1.rawValue }.map(\.name)
        let table = UnsafeMutablePointer<UnsafeRawBufferPointer>.allocate(capacity: names.count)
        for (index, name) in names.enumerated() {
            (table + index).initialize(to: UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        }
        return UnsafePointer(table)
    }()
}

/// Where the octets of a head are.
private struct HeadMemory {
    private let received: UnsafeRawPointer
    private let receivedCount: Int
    private let own: UnsafeRawPointer
    private let ownCount: Int

    /// - Precondition: neither is without memory.
    init(_ head: borrowing OutgoingHead, received: UnsafeRawBufferPointer) {
        let own = head.own
        guard let receivedBase = received.baseAddress, let ownBase = own.baseAddress else {
            preconditionFailure("a head without memory")
        }
        self.received = receivedBase
        receivedCount = received.count
        self.own = ownBase
        ownCount = own.count
    }

    @inline(__always)
    subscript(octets: OutgoingOctets) -> UnsafeRawBufferPointer {
        let start = Int(octets.range.start)
        let count = Int(octets.range.count)
        precondition(start >= 0 && count >= 0 && start &+ count <= (octets.isOwn ? ownCount : receivedCount))
        return UnsafeRawBufferPointer(start: (octets.isOwn ? own : received) + start, count: count)
    }
}

// MARK: -

extension FieldList {
    /// - Parameters:
    ///   - head: as `writeRequest` writes it.
    ///   - received: the head's bytes it was written from.
    ///   - scheme: of the upstream.
    ///   - secretName: lower case; the field of this name is never indexed, as is `authorization`.
    ///   - secretTarget: the target carries a credential.
    ///   - protocolName: for extended CONNECT, without the proof of a WebSocket's handshake, which is HTTP/1.1's alone (RFC 8441 §5);
    ///     empty otherwise.
    ///   - acceptsTrailers: say `te: trailers`.
    mutating func fill(
        request head: borrowing OutgoingHead, received: UnsafeRawBufferPointer, scheme: StaticString,
        secretName: UnsafeRawBufferPointer, secretTarget: Bool, protocolName: StaticString, acceptsTrailers: Bool
    ) {
        count = 0
        held = UnsafeRawBufferPointer(start: nil, count: 0)
        let memory = HeadMemory(head, received: received)
        let extended = protocolName.utf8CodeUnitCount > 0
        if extended {
            append(Self.bytes(":method"), Self.bytes("CONNECT"), Self.staticName | Self.staticValue)
            append(Self.bytes(":protocol"), Self.bytes(protocolName), Self.staticName | Self.staticValue)
        } else {
            append(Self.bytes(":method"), memory[head.method], Self.staticName)
        }
        append(Self.bytes(":scheme"), Self.bytes(scheme), Self.staticName | Self.staticValue)
        let targetFlags = secretTarget ? Self.secret | Self.staticName : Self.staticName
        append(Self.bytes(":path"), memory[head.target], targetFlags)
        append(Self.bytes(":authority"), memory[head.host], Self.staticName)
        let first = count
        addFields(of: head, memory, secretName: secretName, leavesOutKey: extended)
        if acceptsTrailers {
            append(Self.bytes("te"), Self.bytes("trailers"), Self.staticName | Self.staticValue)
        }
        if head.size <= HeldValue.longestHead { holdSecret(from: first) }
    }

    /// - Parameters:
    ///   - head: as `writeResponse` writes it.
    ///   - received: the head's bytes it was written from.
    mutating func fill(response head: borrowing OutgoingHead, received: UnsafeRawBufferPointer) {
        count = 0
        status.storeBytes(of: UInt8(truncatingIfNeeded: head.status / 100 % 10) | 0x30, as: UInt8.self)
        status.storeBytes(of: UInt8(truncatingIfNeeded: head.status / 10 % 10) | 0x30, toByteOffset: 1, as: UInt8.self)
        status.storeBytes(of: UInt8(truncatingIfNeeded: head.status % 10) | 0x30, toByteOffset: 2, as: UInt8.self)
        append(Self.bytes(":status"), UnsafeRawBufferPointer(start: status, count: 3), Self.staticName)
        addFields(
            of: head, HeadMemory(head, received: received), secretName: .init(start: nil, count: 0), leavesOutKey: false
        )
    }

    private mutating func addFields(
        of head: borrowing OutgoingHead, _ memory: HeadMemory, secretName: UnsafeRawBufferPointer, leavesOutKey: Bool
    ) {
        // `authorization` is one without having to be named.
        let hasSecretName = !secretName.isEmpty && !secretName.spells("authorization")
        head.withFields { fields in
            let names = KnownNames.all
            extend(by: fields.count) { pair in
                for field in fields {
                    var name: UnsafeRawBufferPointer
                    var flags: UInt8 = 0
                    if field.known == .other {
                        name = memory[field.name]
                        if leavesOutKey, name.spells("sec-websocket-key") { continue }
                    } else {
                        name = names[Int(field.known.rawValue)]
                        flags = Self.staticName
                    }
                    if field.known == .authorization || hasSecretName && sameOctets(name, secretName) {
                        flags |= Self.secret
                    }
                    pair.initialize(to: Self.pair(name, memory[field.value], flags))
                    pair += 1
                }
            }
        }
    }
}
