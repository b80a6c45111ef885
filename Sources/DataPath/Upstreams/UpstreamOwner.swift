internal import Tokens

/// Who alone may send requests on a connection to an upstream, since the connection itself has been authenticated, or begun to be: NTLM and
/// Negotiate vouch for a connection and not for a request (RFC 4559 §6).
///
/// The pool compares owners and knows nothing else of them.
package enum UpstreamOwner: Hashable, Comparable, Sendable {
    /// A caller's connection, by a number that its loop gives to no other one.
    case caller(UInt64)
    /// An end user in whose name the identity authenticates connections, by a number that its loop gives to nobody else.
    case subject(UInt64)

    /// Requests of a subject can go out on any new connection. A caller would have to authenticate again on another one, so that it keeps its
    /// own however long ago that was used.
    var authenticatesEachRequest: Bool { if case .subject = self { true } else { false } }
}

/// The numbers of the end users whose connections a loop has. They never come back, so that whoever is forgotten here has no connection any more.
struct SubjectNumbers {
    private var numbers: [ByteString: UInt64] = [:]

    /// Users whose connections are found again; beyond them all begin anew.
    static let most = 4096

    /// - Parameter last: the number that was given last.
    mutating func number(of subject: ByteString, after last: inout UInt64) -> UInt64 {
        if let known = numbers[subject] { return known }
        if numbers.count >= Self.most { numbers = [:] }
        last += 1
        numbers[subject] = last
        return last
    }
}

/// The owned connections of a pool that wait for their owners' next requests: one an owner at most.
struct OwnedConnections<Member: PoolMember> {
    private var members: [UpstreamOwner: Member] = [:]

    var count: Int { members.count }
    var all: [Member] { members.sorted { $0.key < $1.key }.map(\.value) }

    mutating func take(_ owner: UpstreamOwner) -> Member? { members.removeValue(forKey: owner) }

    /// - Returns: the connection that the owner had there before.
    mutating func put(_ connection: Member, of owner: UpstreamOwner) -> Member? {
        members.updateValue(connection, forKey: owner)
    }

    mutating func remove(_ connection: Member) {
        guard let owner = connection.owner, members[owner] === connection else { return }
        members[owner] = nil
    }

    /// The one that has been without an exchange the longest, a handshake between two of its messages being the last one chosen. Looks at all
    /// of them, which only a bound that is reached asks for.
    /// - Parameter sparing: no such handshake is chosen.
    func idlest(sparing: Bool) -> Member? {
        members.lazy.filter { !sparing || !$0.value.isInHandshake }.min {
            ($0.value.isInHandshake ? 1 : 0, $0.value.idleSince, $0.key)
                < ($1.value.isInHandshake ? 1 : 0, $1.value.idleSince, $1.key)
        }?.value
    }
}
