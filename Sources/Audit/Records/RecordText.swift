internal import Telemetry

extension LogLine {
    /// The record up to its code, without a line end.
    /// - Parameter after: the code of the record before it in hexadecimal digits, for the first record of a file.
    mutating func write(_ record: AuditRecord, number: UInt64, group: UInt64, after: [UInt8]?) {
        clear()
        append(octets: RecordForm.number)
        append(decimal: number)
        append(octets: RecordForm.group)
        append(decimal: group)
        if let after {
            append(octets: RecordForm.after)
            append(octets: after)
            append("\"")
        }
        append(",\"time\":\"")
        append(time: record.time)
        append("\",\"act\":\"")
        append(escaped: record.act.rawValue.utf8)
        append("\"")
        for field in record.fields { write(field) }
    }

    private mutating func write(_ field: AuditField) {
        append(",\"")
        append(escaped: field.key.rawValue.utf8)
        append("\":")
        switch field.value {
        case .count(let value): append(decimal: value)
        case .name(let name): quoted { $0.append(escaped: name.utf8.prefix(128)) }
        case .word(let word): quoted { $0.append(word) }
        case .time(let time): quoted { $0.append(time: time) }
        case .subject(let tag): quoted { $0.append(octets: tag.digits) }
        }
    }

    private mutating func quoted(_ body: (inout LogLine) -> Void) {
        append("\"")
        body(&self)
        append("\"")
    }
}
