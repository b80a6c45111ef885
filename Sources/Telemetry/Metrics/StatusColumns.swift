/// Status codes as columns of a `MetricRow`: each code that RFC 9110's registry or common practice knows has its own; the rest
/// share one a class, so that an upstream cannot make up series.
public enum StatusColumns {
    private static let known: [Int] = [
        100, 101, 102, 103, 200, 201, 202, 203, 204, 205, 206, 207, 208, 226, 300, 301, 302, 303, 304, 305, 307, 308,
        400,
        401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422, 423, 424,
        425,
        426, 428, 429, 431, 451, 499, 500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511,
    ]

    /// Values of the `code` label, in column order.
    public static let labels: [String] = known.map(String.init) + ["1xx", "2xx", "3xx", "4xx", "5xx", "other"]

    private static let columns: [UInt8] = (0..<1000).map { code in
        if let column = known.firstIndex(of: code) { return UInt8(column) }
        let shared = (100..<600).contains(code) ? code / 100 - 1 : 5
        return UInt8(known.count + shared)
    }

    /// The column of a status code; anything out of range is `other`.
    public static func column(of status: Int) -> Int {
        Int(columns[status >= 0 && status < 1000 ? status : 0])
    }
}
