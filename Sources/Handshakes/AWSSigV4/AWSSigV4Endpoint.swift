internal import Octets

/// The service and the region that a host of AWS names; each is nil where the host leaves it open.
struct AWSSigV4Endpoint: Sendable, Equatable {
    private(set) var service: String?
    private(set) var region: String?

    /// - Parameter host: in any case of letters, with or without a port.
    init(host: String) {
        let name = host.prefix { $0 != ":" }.lowercased()
        guard let suffix = Self.suffixes.first(where: { name.hasSuffix($0) }) else { return }
        var labels = name.dropLast(suffix.utf8.count).split(separator: ".", omittingEmptySubsequences: false)
        guard !labels.isEmpty, labels.allSatisfy({ !$0.isEmpty }) else { return }
        // An endpoint in a private network.
        if labels.count > 2, labels.last == "vpce" { labels.removeLast() }
        guard let last = labels.last else { return }
        if last.isRegion {
            region = String(last)
            labels.removeLast()
            if labels.last == "dualstack" { labels.removeLast() }
            service = Self.service(labels)
        } else if labels.count > 1, labels[labels.count - 2].isRegion, Self.behindRegion.contains(last) {
            region = String(labels[labels.count - 2])
            service = String(last)
        } else if last == "s3-accelerate" {
            service = "s3"
        } else if last.hasPrefix("s3-"), !last.hasPrefix("s3-website"), last.dropFirst(3).isRegion {
            (service, region) = ("s3", String(last.dropFirst(3)))
        } else if suffix == Self.suffixes[0], last == "s3" || labels.count == 1 && Self.ofOneRegion.contains(last) {
            (service, region) = (String(last), "us-east-1")
        }
    }

    private static let suffixes = [".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".api.aws", ".on.aws"]
    /// Services whose name stands behind the region.
    private static let behindRegion: Set<Substring> = ["es", "aoss", "cloudsearch"]
    /// Services that are the same everywhere, and sign for one region.
    private static let ofOneRegion: Set<Substring> = [
        "budgets", "cloudfront", "iam", "importexport", "organizations", "route53", "savingsplans", "sts", "waf",
    ]

    /// The name that is signed; nil where the labels stand for several services.
    private static func service(_ labels: [Substring]) -> String? {
        guard var label = labels.last else { return nil }
        if label.hasSuffix("-fips") { label = label.dropLast(5) }
        let isAlone = labels.count == 1
        switch label {
        // `data-ats.iot` and `portal.sso` are services of their own, each with another name.
        case "iot", "sso", "connect": return isAlone ? String(label) : nil
        case "pinpoint": return isAlone ? "mobiletargeting" : nil
        case "marketplace": return isAlone ? nil : "aws-marketplace"
        // `maps.geo` and its kin are services of their own.
        case "geo": return isAlone ? "geo" : "geo-\(labels[labels.count - 2])"
        // Directory buckets want sessions of their own, and websites take no signature.
        case _ where label.hasPrefix("s3express") || label.hasPrefix("s3-website"): return nil
        default: return signed[label] ?? String(label)
        }
    }

    /// Names that are signed, where they are not those in hosts; made from botocore's list of services.
    private static let signed: [Substring: String] = [
        "account-access-runtime": "account-access", "agent-registry-control": "agent-registry",
        "agreement-marketplace": "aws-marketplace", "aos": "es", "appconfigdata": "appconfig",
        "appstream2": "appstream", "appsync-api": "appsync", "aps-workspaces": "aps",
        "catalog-marketplace": "aws-marketplace", "efs": "elasticfilesystem",
        "entitlement-marketplace": "aws-marketplace", "git-codecommit": "codecommit", "kafka-api": "kafka",
        "metering-marketplace": "aws-marketplace", "streams-dynamodb": "dynamodb", "timestream-ingest": "timestream",
        "timestream-query": "timestream", "transcribestreaming": "transcribe",
        "bedrock-agent": "bedrock", "bedrock-agent-runtime": "bedrock",
        "bedrock-agentcore-control": "bedrock-agentcore", "bedrock-data-automation": "bedrock",
        "bedrock-data-automation-runtime": "bedrock", "bedrock-runtime": "bedrock", "cassandra-streams": "cassandra",
        "cloudhsmv2": "cloudhsm", "cloudsearchdomain": "cloudsearch", "cloudwatch-omni": "cloudwatch",
        "contact-lens": "connect", "data-signer": "signer", "deployment-marketplace": "aws-marketplace",
        "discovery-marketplace": "aws-marketplace", "email": "ses", "eventsv2": "events", "forecastquery": "forecast",
        "iam-toolbox": "iam", "identity-chime": "chime", "ivsrealtime": "ivs", "lambda-url": "lambda",
        "mail-manager": "ses", "media-pipelines-chime": "chime", "meetings-chime": "chime", "memory-db": "memorydb",
        "messaging-chime": "chime", "migrationhub-config": "mgh", "models-v2-lex": "lex", "oidc": "sso-oauth",
        "partnercentral-prm": "partnercentral", "personalize-events": "personalize",
        "personalize-runtime": "personalize", "reporting-marketplace": "aws-marketplace",
        "runtime-v2-lex": "lex", "s3-accesspoint": "s3", "s3-control": "s3",
        "servicecatalog-appregistry": "servicecatalog", "voice-chime": "chime",
    ]
}

extension Substring {
    /// Whether it is written as a region is: `eu-west-1`, `us-gov-west-1`.
    fileprivate var isRegion: Bool {
        let words = split(separator: "-", omittingEmptySubsequences: false)
        guard words.count >= 3, let last = words.last, !last.isEmpty, last.utf8.allSatisfy(\.isDigit) else {
            return false
        }
        return words.dropLast().allSatisfy { word in !word.isEmpty && word.utf8.allSatisfy(\.isLetter) }
    }
}
