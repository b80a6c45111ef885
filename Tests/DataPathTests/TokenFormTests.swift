import Testing

@testable import DataPath

@Suite struct TokenFormTests {
    private func verdict(_ form: String, pieces: Int) -> TokenForm.Verdict {
        var reader = TokenForm()
        let octets = Array(form.utf8)
        octets.withUnsafeBytes { bytes in
            for start in stride(from: 0, to: bytes.count, by: pieces) {
                reader.read(UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + pieces, bytes.count)]))
            }
        }
        return reader.end()
    }

    static let cases: [(String, TokenForm.Verdict)] = [
        ("grant_type=client_credentials", .grant(.clientCredentials)),
        ("a=b&grant_type=password&username=u&password=p", .grant(.password)),
        ("%67rant%5Ftype=refresh%5ftoken", .grant(.refreshToken)),
        ("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=x", .grant(.jwtBearer)),
        ("grant_type=urn:ietf:params:oauth:grant-type:saml2-bearer", .grant(.saml2Bearer)),
        ("grant_type=urn:ietf:params:oauth:grant-type:token-exchange", .grant(.tokenExchange)),
        ("grant_type=&grant_type=password&grant_type=&grant_type", .grant(.password)),
        ("x=%&y=%4&z=%zz&grant_type=password", .grant(.password)),
        ("grant_type=authorization_code", .unsupported),
        ("grant_type=pass+word", .unsupported),
        ("grant_type=password=", .unsupported),
        ("grant_type=" + String(repeating: "x", count: 1000), .unsupported),
        ("", .invalid), ("&&&", .invalid), ("grant_type", .invalid), ("grant_type=", .invalid),
        ("grant_typ=password", .invalid), ("grant_type_=password", .invalid), ("a=grant_type=password", .invalid),
        ("%67rant%5Ztype=password", .invalid), ("grant_type%=password", .invalid),
        ("grant_type=password&grant_type=password", .invalid), ("grant_type=pass%word", .invalid),
        ("grant_type=password%", .invalid), ("grant_type=password%6&x=y", .invalid),
    ]

    /// Whatever the pieces in which it comes.
    @Test(arguments: cases) func oneGrantIsFound(form: String, expected: TokenForm.Verdict) {
        for pieces in [1, 2, 3, 7, 5000] { #expect(verdict(form, pieces: pieces) == expected, "\(form) by \(pieces)") }
    }
}
