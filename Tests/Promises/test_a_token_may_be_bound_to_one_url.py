"""Promise: with `token_scope: url` each URL gets a token of its own, and each is fetched once."""


def test_each_url_has_its_own_token(gateway):
    gateway.webgate(identity={"token_scope": "url"}).start()
    for page in range(3):
        for number in (1, 2, 3):
            assert gateway.get(f"/hr/rest/employees/{number}?page={page}").status == 200
        # A path below another one is another URL, whatever prefix they share.
        assert gateway.get("/hr/rest/employees/1/slips").status == 200
    counts = gateway.lab.counts()
    assert (counts["access"], counts["register"], counts["authenticate"]) == (4, 1, 1)
