internal import Configuration

// The configuration's words for things that other modules have words of their own for. This file imports the one module alone, so that
// each name can mean only one thing here.

typealias ConfiguredOrigin = Origin
typealias ConfiguredHandshake = Handshake
typealias ConfiguredOAuth2 = OAuth2Handshake
typealias ConfiguredWebGate = OAMWebgateHandshake
typealias ConfiguredOAMOAuth = OAMOAuthHandshake
typealias ConfiguredMobileFirst = MobileFirstHandshake
typealias ConfiguredAdobePass = AdobePassHandshake
typealias ConfiguredMobileHub = MobileHubHandshake
typealias ConfiguredRoute = Route
typealias ConfiguredIdentity = Identity
typealias ConfiguredURL = ServiceURL
typealias ConfiguredTLS = ClientTLS
