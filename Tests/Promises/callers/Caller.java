import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** An ordinary Java program against an open API: all shapes with HttpClient, then all with HttpURLConnection. Prints JSON.
 *  usage: java Caller.java BASE_URL */
public class Caller {
    record Reply(int status, byte[] body) {}

    interface Work { Reply run() throws Exception; }

    static final List<String> results = new ArrayList<>();
    static String base;

    public static void main(String[] arguments) throws Exception {
        base = arguments[0];
        byte[] big = "0123456789abcdef".repeat(5 * 1024 * 64).getBytes(StandardCharsets.US_ASCII);
        byte[] small = "{\"note\":\"a small body\"}".getBytes(StandardCharsets.US_ASCII);

        HttpClient client = HttpClient.newHttpClient();
        shapes("HttpClient", small, big,
            path -> fetch(client, HttpRequest.newBuilder(URI.create(base + path)).GET()),
            (body, chunked) -> fetch(client, HttpRequest.newBuilder(URI.create(base + "/echo")).POST(chunked
                ? HttpRequest.BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(body))
                : HttpRequest.BodyPublishers.ofByteArray(body))));
        run("HttpClient", "close", () -> fetch(HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build(),
            HttpRequest.newBuilder(URI.create(base + "/employees/1")).GET()));

        shapes("HttpURLConnection", small, big,
            path -> old(path, null, false, false), (body, chunked) -> old("/echo", body, chunked, false));
        run("HttpURLConnection", "close", () -> old("/employees/1", null, false, true));
        System.out.println("[" + String.join(",", results) + "]");
        System.exit(0);
    }

    interface Get { Reply run(String path) throws Exception; }

    interface Post { Reply run(byte[] body, boolean chunked) throws Exception; }

    static void shapes(String client, byte[] small, byte[] big, Get get, Post post) {
        run(client, "get", () -> get.run("/employees/1"));
        run(client, "post_length", () -> post.run(small, false));
        run(client, "post_chunked", () -> post.run(small, true));
        run(client, "up", () -> post.run(big, false));
        run(client, "up_chunked", () -> post.run(big, true));
        run(client, "down", () -> get.run("/stream?bytes=5242880"));
        run(client, "down_chunked", () -> get.run("/stream?bytes=5242880&chunked=1"));
        for (int i = 1; i <= 3; i++) {
            String path = "/employees/" + i;
            run(client, "keep_alive_" + i, () -> get.run(path));
        }
    }

    static Reply fetch(HttpClient client, HttpRequest.Builder request) throws Exception {
        HttpResponse<byte[]> response = client.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
        return new Reply(response.statusCode(), response.body());
    }

    static Reply old(String path, byte[] body, boolean chunked, boolean close) throws Exception {
        HttpURLConnection connection = (HttpURLConnection) URI.create(base + path).toURL().openConnection();
        if (close) connection.setRequestProperty("Connection", "close");
        if (body != null) {
            connection.setRequestMethod("POST");
            connection.setDoOutput(true);
            if (chunked) connection.setChunkedStreamingMode(8192);
            else connection.setFixedLengthStreamingMode(body.length);
            try (var out = connection.getOutputStream()) { out.write(body); }
        }
        int status = connection.getResponseCode();
        try (InputStream in = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
            return new Reply(status, in == null ? new byte[0] : in.readAllBytes());
        }
    }

    static void run(String client, String shape, Work work) {
        String head = "{\"client\":\"" + client + "\",\"shape\":\"" + shape + "\",";
        try {
            Reply reply = work.run();
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(reply.body);
            String text = reply.body.length < 500 ? new String(reply.body, StandardCharsets.ISO_8859_1) : "";
            results.add(head + "\"status\":" + reply.status + ",\"length\":" + reply.body.length + ",\"sha256\":\""
                + HexFormat.of().formatHex(digest) + "\",\"text\":" + quote(text) + "}");
        } catch (Exception error) {
            results.add(head + "\"status\":0,\"error\":" + quote(error.toString()) + "}");
        }
    }

    static String quote(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') out.append('\\').append(c);
            else if (c < 0x20) out.append(String.format("\\u%04x", (int) c));
            else out.append(c);
        }
        return out.append('"').toString();
    }
}
