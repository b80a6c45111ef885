internal import COpenSSL
internal import Glibc

/// A date in a certificate or in an OCSP answer, as seconds since 1970; nil where it cannot be read.
func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
    var parts = tm()
    guard let time, ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
    return Int64(timegm(&parts))
}
