/// What a token endpoint wants of every request, whichever server it is: POST, one form, each parameter once (RFC 6749 §3.2).
struct FormFault: Error {
    let why: String
}

extension Form {
    static func posted(_ request: Request, _ body: [UInt8]) throws(FormFault) -> [String: String] {
        guard request.method == "POST" else { throw FormFault(why: "POST is wanted") }
        let type = request.single("Content-Type")?.split(separator: ";").first?.lowercased()
        guard type == "application/x-www-form-urlencoded" else { throw FormFault(why: "wrong Content-Type") }
        guard let text = String(validating: body, as: UTF8.self), let pairs = parse(text) else {
            throw FormFault(why: "body is not a form")
        }
        var form: [String: String] = [:]
        for pair in pairs {
            guard form.updateValue(pair.value, forKey: pair.name) == nil else {
                throw FormFault(why: "parameter \(pair.name) stands twice")
            }
        }
        return form
    }
}
