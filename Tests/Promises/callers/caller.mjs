// An ordinary Node program against an open API: all shapes with fetch, then all with http. Prints JSON.
// usage: node caller.mjs BASE_URL
import crypto from "node:crypto";
import http from "node:http";

const base = process.argv[2];
const big = Buffer.alloc(5 * 1024 * 1024, "0123456789abcdef");
const small = Buffer.from('{"note":"a small body"}');
const sha256 = (data) => crypto.createHash("sha256").update(data).digest("hex");
const results = [];

async function run(client, shape, work) {
    try {
        const { status, body } = await work();
        results.push({ client, shape, status, length: body.length, sha256: sha256(body), text: body.length < 500 ? body.toString() : "" });
    } catch (error) {
        results.push({ client, shape, status: 0, error: String(error.cause ?? error) });
    }
}

async function withFetch(path, options = {}) {
    const response = await fetch(base + path, options);
    return { status: response.status, body: Buffer.from(await response.arrayBuffer()) };
}

function withHttp(path, { method = "GET", headers = {}, body, pieces, agent } = {}) {
    return new Promise((resolve, reject) => {
        const request = http.request(base + path, { method, headers, agent }, (response) => {
            const parts = [];
            response.on("data", (part) => parts.push(part));
            response.on("end", () => resolve({ status: response.statusCode, body: Buffer.concat(parts) }));
            response.on("error", reject);
        });
        request.on("error", reject);
        for (const piece of pieces ?? []) request.write(piece);
        request.end(body);
    });
}

const halves = (data) => [data.subarray(0, data.length >> 1), data.subarray(data.length >> 1)];
const stream = (data) => new ReadableStream({ start(c) { for (const part of halves(data)) c.enqueue(part); c.close(); } });

await run("fetch", "get", () => withFetch("/employees/1"));
await run("fetch", "post_length", () => withFetch("/echo", { method: "POST", body: small }));
await run("fetch", "post_chunked", () => withFetch("/echo", { method: "POST", body: stream(small), duplex: "half" }));
await run("fetch", "up", () => withFetch("/echo", { method: "POST", body: big }));
await run("fetch", "up_chunked", () => withFetch("/echo", { method: "POST", body: stream(big), duplex: "half" }));
await run("fetch", "down", () => withFetch("/stream?bytes=5242880"));
await run("fetch", "down_chunked", () => withFetch("/stream?bytes=5242880&chunked=1"));
for (let i = 1; i <= 3; i++) await run("fetch", `keep_alive_${i}`, () => withFetch(`/employees/${i}`));
await run("fetch", "close", () => withFetch("/employees/1", { headers: { connection: "close" } }));

const kept = new http.Agent({ keepAlive: true, maxSockets: 1 });
const closed = new http.Agent({ keepAlive: false });
const post = (body) => ({ method: "POST", agent: kept, headers: { "content-length": body.length }, body });
const chunked = (body) => ({ method: "POST", agent: kept, pieces: halves(body) });
await run("http", "get", () => withHttp("/employees/1", { agent: kept }));
await run("http", "post_length", () => withHttp("/echo", post(small)));
await run("http", "post_chunked", () => withHttp("/echo", chunked(small)));
await run("http", "up", () => withHttp("/echo", post(big)));
await run("http", "up_chunked", () => withHttp("/echo", chunked(big)));
await run("http", "down", () => withHttp("/stream?bytes=5242880", { agent: kept }));
await run("http", "down_chunked", () => withHttp("/stream?bytes=5242880&chunked=1", { agent: kept }));
for (let i = 1; i <= 3; i++) await run("http", `keep_alive_${i}`, () => withHttp(`/employees/${i}`, { agent: kept }));
await run("http", "close", () => withHttp("/employees/1", { agent: closed }));
kept.destroy();
console.log(JSON.stringify(results));
