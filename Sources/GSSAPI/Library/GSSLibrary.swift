internal import CGSSAPI

/// The system's GSSAPI library, opened at run time.
///
/// The binary has no link dependency on it, so that it runs where the library is missing, and `open()` then tells so. The library is never closed,
/// because it keeps data of each thread that called it.
///
/// Thread safety: MIT's library may be called from any number of threads as long as no two calls use the same security context; it
/// guards credentials, caches in memory and its list of mechanisms by locks of its own. The table of functions is written once,
/// before the value exists, and only read afterwards.
public struct GSSLibrary: @unchecked Sendable {
    /// Allocated once and never freed, like the library.
    let calls: UnsafePointer<cgss_calls>

    /// MIT Kerberos' soname on Linux since 2004. Heimdal's differs (`libgssapi.so.3`), and so does its ABI of credential stores.
    public static let soname = "libgssapi_krb5.so.2"

    /// Opened by the first caller, whose thread may read the disk for some milliseconds. A failure is remembered, too: a library that is
    /// installed later is found by the next process.
    private static let opened = open(soname: soname)

    /// The library of the system.
    ///
    /// - Throws: a fault of kind `libraryMissing` whose message names the soname and the loader's reason, or the missing function.
    public static func open() throws(GSSFault) -> GSSLibrary { try opened.get() }

    /// Opens a library by another name, anew on each call. Each success keeps a table of functions for the life of the process.
    public static func open(soname: String) -> Result<GSSLibrary, GSSFault> {
        let calls = UnsafeMutablePointer<cgss_calls>.allocate(capacity: 1)
        calls.initialize(to: cgss_calls())
        let (status, told) = withCText(capacity: 384) { room, capacity in
            cgss_open(soname, calls, room, capacity)
        }
        switch status {
        case Int32(CGSS_OPENED): return .success(GSSLibrary(calls: UnsafePointer(calls)))
        case Int32(CGSS_NO_SYMBOL):
            calls.deallocate()
            return .failure(
                GSSFault(.libraryMissing, "\(soname) has no function \(told): MIT Kerberos 1.11 or later is needed"))
        default:
            calls.deallocate()
            return .failure(GSSFault(.libraryMissing, "the GSSAPI library cannot be opened: \(told)"))
        }
    }
}

/// Lends zeroed room for a C string, and returns the string that was written.
func withCText<Value>(
    capacity: Int, _ body: (UnsafeMutablePointer<CChar>, Int) -> Value
) -> (Value, String) {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity) { room in
        room.initialize(repeating: 0)
        guard let start = room.baseAddress else { preconditionFailure("room for a text has an address") }
        let value = body(start, room.count)
        return (value, String(cString: start))
    }
}
