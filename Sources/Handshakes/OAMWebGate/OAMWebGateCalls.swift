internal import Octets

// The three requests of Mobile & Social. Spellings are case-sensitive to the service.
extension OAMWebGateHandshake {
    func registerCall(password: Secret) -> IssuerCall {
        var body = JSONBody(capacity: 1024 + claimsSize + 6 * (password.count + settings.username.utf8.count))
        userCredential(&body, password: password, tokenType: "CLIENTREGHANDLE")
        deviceProfile(&body)
        return call("register", endpoints.register, handle: nil, body: body.finish(), carriesPassword: true)
    }

    /// Mobile services want profile and client id again; desktop services get nothing extra.
    func authenticateCall(password: Secret, handle: Secret?) -> IssuerCall {
        var body = JSONBody(capacity: 1024 + claimsSize + 6 * (password.count + settings.username.utf8.count))
        userCredential(&body, password: password, tokenType: settings.userTokenType)
        if settings.clientAuth != .none { deviceProfile(&body) }
        return call("authenticate", endpoints.authenticate, handle: handle, body: body.finish(), carriesPassword: true)
    }

    func accessCall(userToken: Secret, handle: Secret?, challenge: Challenge) -> IssuerCall {
        let resource = challenge.resource + settings.resourceSuffix
        var body = JSONBody(capacity: 1024 + 6 * (userToken.count + challenge.context.count + resource.utf8.count))
        body.member("X-Idaas-Rest-Subject-Type", "TOKEN")
        body.member("X-Idaas-Rest-Subject-Value", userToken)
        // Never decoded: the service compares what the WebGate wrote.
        body.member("X-Idaas-Rest-Application-Context", challenge.context)
        body.member("X-Idaas-Rest-Application-Resource", resource)
        body.member("X-Idaas-Rest-New-Token-Type-To-Create", "ACCESSTOKEN")
        return call("access", endpoints.access, handle: handle, body: body.finish(), carriesPassword: false)
    }

    private func userCredential(_ body: inout JSONBody, password: Secret, tokenType: String) {
        body.member("X-Idaas-Rest-Subject-Type", "USERCREDENTIAL")
        body.member("X-Idaas-Rest-Subject-Username", settings.username)
        body.member("X-Idaas-Rest-Subject-Password", password)
        body.member("X-Idaas-Rest-New-Token-Type-To-Create", tokenType)
    }
}

// MARK: - Device profile

extension OAMWebGateHandshake {
    private var claimsSize: Int {
        settings.deviceClaims.reduce(0) { $0 + 64 + 6 * ($1.key.utf8.count + $1.value.utf8.count) }
    }

    private func deviceProfile(_ body: inout JSONBody) {
        body.open("deviceProfile")
        OAMDeviceProfile.write(settings.deviceClaims, into: &body)
        body.close()
        if let clientID = settings.clientID { body.member("clientId", clientID) }
    }
}

// MARK: - Headers

extension OAMWebGateHandshake {
    private func call(
        _ step: String, _ url: IssuerURL, handle: Secret?, body: [UInt8], carriesPassword: Bool
    ) -> IssuerCall {
        var headers = IssuerCall.jsonHeaders + [(settings.serviceDomainHeader, settings.serviceDomain)]
        if let version = settings.restVersion { headers.append((name: "X-IDAAS-REST-VERSION", value: version)) }
        if let handle, let proof = clientProof(handle) {
            headers.append((name: settings.clientAuthHeader, value: proof))
        }
        return IssuerCall(
            step: step, method: "POST", url: url, headers: headers, body: body, carriesPassword: carriesPassword)
    }

    // base64(clientId ":" handle), in the one of the two wrappings that the service takes.
    private func clientProof(_ handle: Secret) -> String? {
        guard let clientID = settings.clientID else { return nil }
        var credentials = BasicHandshake.credentials(user: Array(clientID.utf8), password: handle)
        defer { credentials.wipe() }
        let text = String(decoding: credentials, as: UTF8.self)
        switch settings.clientAuth {
        case .none: return nil
        case .uidPassword: return "UIDPASSWORD cred=\"\(text)\""
        case .basic: return "Basic \(text)"
        }
    }
}
