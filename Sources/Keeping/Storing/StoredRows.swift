internal import Handshakes
internal import Numbers
internal import Tokens

/// The sealed value of the row of an access token. Big-endian numbers and counted byte strings behind a version byte; a row that does
/// not decode exactly is dropped.
struct AccessRow {
    var line: Secret
    /// Milliseconds since 1970.
    var wallExpiry: Int64
    /// Nanoseconds of the whole life.
    var original: UInt64
    var level: Int?
    var granted: ScopeSet
}

/// A registration or a session, as its handshake encoded it.
struct LayerRow {
    var material: Secret
    var refreshToken: Secret?
    var isHuman: Bool
    var wallExpiry: Int64?
    var original: UInt64?
    /// The end of the refresh token, in milliseconds since 1970, and its whole life in nanoseconds.
    var refreshEnd: (wall: Int64, whole: UInt64)?
}

enum AttemptRow {
    /// The key of the row that each mark has for itself; the file shows only the key's HMAC.
    static func key(of mark: AttemptMark) -> [UInt8] {
        var writer = RowWriter()
        writer.put(Array(mark.account.issuer.description.utf8))
        writer.put(mark.account.user.bytes)
        writer.put(mark.secretHash.bytes)
        return writer.bytes
    }
}

/// The family of a refresh token that the configuration names. The row's key is the keyed hash of the first.
struct FamilyRow {
    var lock: SessionLockKey
    /// Nil where none is left that is good.
    var current: Secret?
    /// The same as in `RefreshTokenFamilies.Family`.
    var isPresumed = false
}

// MARK: - Encoding

extension FamilyRow {
    func encoded() -> [UInt8] {
        var writer = RowWriter()
        writer.put(lock.issuer.scheme.bytes)
        writer.put(lock.issuer.host.bytes)
        writer.put(Int64(lock.issuer.port))
        writer.put(Int64((lock.subject == nil ? 0 : 1) | (current == nil ? 0 : 2) | (isPresumed ? 4 : 0)))
        if let subject = lock.subject { writer.put(subject.bytes) }
        current?.withBytes { writer.put(Array($0)) }
        return writer.bytes
    }

    init?(encoded bytes: [UInt8]) {
        guard var reader = RowReader(bytes), let scheme = reader.string(), let host = reader.string(),
            let port = reader.number()?.within(0...UInt16.max), let marks = reader.number()?.within(0...7)
        else { return nil }
        var subject: ByteString?
        if marks & 1 != 0 {
            guard let bytes = reader.string() else { return nil }
            subject = ByteString(bytes)
        }
        if marks & 2 != 0 {
            guard let bytes = reader.string() else { return nil }
            current = Secret(bytes)
        }
        guard reader.isAtEnd else { return nil }
        isPresumed = marks & 4 != 0
        let issuer = Tokens.Origin(scheme: ByteString(scheme), host: ByteString(host), port: port)
        lock = SessionLockKey(issuer: issuer, subject: subject)
    }
}

extension AccessRow {
    func encoded() -> [UInt8] {
        var writer = RowWriter()
        writer.put(wallExpiry)
        writer.put(Int64(bitPattern: original))
        writer.put(Int64(level ?? -1))
        writer.put(Array(granted.description.utf8))
        line.withBytes { writer.put(Array($0)) }
        return writer.bytes
    }

    init?(encoded bytes: [UInt8]) {
        guard var reader = RowReader(bytes), let wallExpiry = reader.number(), let original = reader.number(),
            let level = reader.number(), let granted = reader.string(), let line = reader.string(), reader.isAtEnd
        else { return nil }
        self.init(
            line: Secret(line), wallExpiry: WallTime(milliseconds: wallExpiry).milliseconds,
            original: TimeSpan(original, .nanoseconds).nanoseconds, level: level.within(0...Int.max),
            granted: ScopeSet(spaceSeparated: granted))
    }
}

extension LayerRow {
    func encoded() -> [UInt8] {
        var writer = RowWriter()
        writer.put(wallExpiry ?? -1)
        writer.put(Int64(bitPattern: original ?? .max))
        material.withBytes { writer.put(Array($0)) }
        writer.put(Int64((refreshToken == nil ? 0 : 1) | (isHuman ? 2 : 0) | (refreshEnd == nil ? 0 : 4)))
        refreshToken?.withBytes { writer.put(Array($0)) }
        if let refreshEnd {
            writer.put(refreshEnd.wall)
            writer.put(Int64(bitPattern: refreshEnd.whole))
        }
        return writer.bytes
    }

    init?(encoded bytes: [UInt8]) {
        guard var reader = RowReader(bytes), let wallExpiry = reader.number(), let original = reader.number(),
            let material = reader.string(), let marks = reader.number()?.within(0...7)
        else { return nil }
        var refreshToken: Secret?
        if marks & 1 != 0 {
            guard let token = reader.string() else { return nil }
            refreshToken = Secret(token)
        }
        var refreshEnd: (Int64, UInt64)?
        if marks & 4 != 0 {
            guard let wall = reader.number(), let whole = reader.number() else { return nil }
            refreshEnd = (WallTime(milliseconds: wall).milliseconds, TimeSpan(whole, .nanoseconds).nanoseconds)
        }
        guard reader.isAtEnd else { return nil }
        self.init(
            material: Secret(material), refreshToken: refreshToken, isHuman: marks & 2 != 0,
            wallExpiry: wallExpiry.within(0...Int64.max).map { WallTime(milliseconds: $0).milliseconds },
            original: original.within(0...Int64.max).map { TimeSpan($0, .nanoseconds).nanoseconds },
            refreshEnd: refreshEnd)
    }
}

private struct RowWriter {
    private(set) var bytes: [UInt8] = [RowReader.version]

    mutating func put(_ number: Int64) {
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> Int64(shift)))
        }
    }

    mutating func put(_ string: [UInt8]) {
        put(Int64(string.count))
        bytes += string
    }
}

private struct RowReader {
    static let version: UInt8 = 1
    private var rest: ArraySlice<UInt8>

    init?(_ bytes: [UInt8]) {
        guard bytes.first == Self.version else { return nil }
        rest = bytes.dropFirst()
    }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func number() -> ReceivedNumber? {
        guard rest.count >= 8 else { return nil }
        let number = rest.prefix(8).reduce(Int64(0)) { $0 << 8 | Int64($1) }
        rest = rest.dropFirst(8)
        return ReceivedNumber(number)
    }

    mutating func string() -> [UInt8]? {
        guard let number = number(), let count = number.within(0...rest.count) else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }
}
