extension Keys {
    static let adobePass = Block(
        name: "adobe_pass", description: "Adobe Pass Authentication: one media token for each request.",
        keys: [
            KeySpec(
                "base_url", .text(.httpURL), "Adobe's server, without a path; with api: v1 https://api.auth.adobe.com.",
                default: "https://sp.auth.adobe.com"),
            KeySpec(
                "api", .words(AdobePassHandshake.API.self),
                "The generation of Adobe's REST API that is spoken. A login made with one is none for the other."),
            KeySpec("service_provider", .text(.name), "The channel or brand, as Adobe knows it.", required: true),
            KeySpec("mvpd", .text(.name), "The pay-TV provider whose subscription is used.", required: true),
            KeySpec(
                "software_statement", .secret,
                "The operator's own software statement, made for the API that is spoken. Sent once, when the client registers.",
                required: true),
            KeySpec(
                "domain_name", .text(.hostName),
                "A domain that is registered for the service provider; required with api: v1."),
            KeySpec(
                "redirect_url", .text(.httpURL),
                "Where the person's browser ends after the login; without it https:// and the domain."),
            KeySpec(
                "resource", .text(.line),
                "What is to be authorized, for routes that do not say it: an id or MRSS, with {path.1} and {query.name} out of the request."
            ),
            KeySpec(
                "preauthorize", .list(.text(.line)),
                "Resources of which the admin page says whether they would be authorized; at most 5, asked at most every 5m."
            ),
            KeySpec("device", .block(adobePassDevice), "What Adobe is told of the device that this gateway is."),
            KeySpec(
                "calls_per_second", .integer(1...1000), "How many calls Adobe allows this address each second.",
                default: "1"),
            KeySpec("burst", .integer(1...1000), "How many it allows at once.", default: "10"),
        ])

    static let adobePassDevice = Block(
        name: "adobe_pass_device", description: "What Adobe is told of the device.",
        keys: [
            KeySpec(
                "id", .text(.line),
                "Tells this device from others; without it a random one is made and kept. Another id ends every login."),
            KeySpec("model", .text(.line), "Its model.", default: "cardea"),
            KeySpec("version", .text(.line), "The version of the model.", default: "1.0"),
            KeySpec(
                "hardware", .words(AdobePassHandshake.Hardware.self), "Its primaryHardwareType, in Adobe's words."),
            KeySpec("os_name", .words(AdobePassHandshake.System.self), "Its operating system, in Adobe's words."),
            KeySpec("os_version", .text(.line), "The version of the operating system.", default: "6.1"),
            KeySpec("connection_type", .text(.line), "How it is connected.", default: "Ethernet"),
        ])
}
