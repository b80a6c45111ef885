/// A field line of a head, as offsets.
public struct Field: Sendable, Equatable {
    /// A token (RFC 9110 §5.6.2), in the case in which it came.
    public var name: ByteRange
    /// Without the blanks around it. Of a folded response field it still holds the folds.
    public var value: ByteRange
    /// The whole line with its CRLF; of a folded field all of its lines.
    public var line: ByteRange
    /// The name, compared without case.
    public var known: KnownField
    /// The name when `_` counts as `-`; equal to `known` for a name without `_`.
    var resembles: KnownField
    /// Marks that the reader of the line left.
    var marks: FieldMarks
}

/// Marks that the reader leaves on a field line.
public struct FieldMarks: OptionSet, Sendable {
    /// A bit for each mark.
    public let rawValue: UInt8

    /// Any bits are allowed.
    @inlinable
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The `Connection` field names it, so it ends at this hop (RFC 9110 §7.6.1).
    public static var nominated: FieldMarks { FieldMarks(rawValue: 1) }
    /// The value runs over more than one line (obs-fold, RFC 9112 §5.2). Responses only.
    public static var folded: FieldMarks { FieldMarks(rawValue: 2) }
    /// Blanks stood before the colon (RFC 9112 §5.1). Responses only.
    public static var spacedColon: FieldMarks { FieldMarks(rawValue: 4) }
}

// MARK: -

extension Field {
    static var empty: Field {
        Field(name: .empty, value: .empty, line: .empty, known: .other, resembles: .other, marks: [])
    }

    /// The line cannot be forwarded byte for byte.
    var needsRepair: Bool { !marks.isDisjoint(with: [.folded, .spacedColon]) }
}
