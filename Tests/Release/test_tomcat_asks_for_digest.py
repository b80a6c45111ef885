"""Tomcat asks for HTTP Digest, and is answered: by the strongest algorithm that it offers, with the numbers that it wants."""

import contextlib

import pytest

from digest_servers import PASSWORD, REALM, USER
from harness import Cardea, eventually, executable, free_port, held, together
from peers import Program
from scripted import identified

APPLICATION = f"""<?xml version="1.0" encoding="UTF-8"?>
<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0">
  <security-constraint>
    <web-resource-collection><web-resource-name>all</web-resource-name><url-pattern>/*</url-pattern></web-resource-collection>
    <auth-constraint><role-name>reader</role-name></auth-constraint>
  </security-constraint>
  <login-config><auth-method>DIGEST</auth-method><realm-name>{REALM}</realm-name></login-config>
  <security-role><role-name>reader</role-name></security-role>
</web-app>
"""

SERVLETS = """<?xml version="1.0" encoding="UTF-8"?>
<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0">
  <servlet><servlet-name>files</servlet-name><servlet-class>org.apache.catalina.servlets.DefaultServlet</servlet-class></servlet>
  <servlet-mapping><servlet-name>files</servlet-name><url-pattern>/</url-pattern></servlet-mapping>
</web-app>
"""


class Tomcat(Program):
    """Debian's Tomcat. `valve`: attributes of its DigestAuthenticator."""

    def __init__(self, folder, **valve):
        base = folder / "tomcat"
        root = base / "webapps" / "ROOT"
        for name in ("conf", "logs", "temp", "work"):
            (base / name).mkdir(parents=True)
        (root / "WEB-INF").mkdir(parents=True)
        (root / "WEB-INF" / "web.xml").write_text(APPLICATION)
        (root / "page.txt").write_text("the page")
        (root / "META-INF").mkdir()
        attributes = " ".join(f'{name}="{value}"' for name, value in valve.items())
        (root / "META-INF" / "context.xml").write_text(
            f'<Context><Valve className="org.apache.catalina.authenticator.DigestAuthenticator" {attributes}/></Context>')
        port = free_port()
        (base / "conf" / "server.xml").write_text(f"""<Server port="-1"><Service name="Catalina">
  <Connector port="{port}" address="127.0.0.1" protocol="HTTP/1.1"/>
  <Engine name="Catalina" defaultHost="localhost">
    <Realm className="org.apache.catalina.realm.MemoryRealm"/>
    <Host name="localhost" appBase="webapps">
      <Valve className="org.apache.catalina.valves.AccessLogValve" directory="logs" prefix="access" suffix=".log" rotatable="false"
             buffered="false" pattern="%s %{{Authorization}}i"/>
    </Host>
  </Engine></Service></Server>""")
        (base / "conf" / "tomcat-users.xml").write_text(
            f'<?xml version="1.0" encoding="UTF-8"?>\n<tomcat-users><user username="{USER}" password="{PASSWORD}" roles="reader"/></tomcat-users>')
        (base / "conf" / "web.xml").write_text(SERVLETS)
        home = "/usr/share/tomcat10"
        self.log_file = base / "logs" / "access.log"
        self.address = f"127.0.0.1:{port}"
        java = executable("CARDEA_JAVA", "java", "apt-get install default-jre-headless")
        super().__init__(
            [java, f"-Dcatalina.home={home}", f"-Dcatalina.base={base}", f"-Djava.io.tmpdir={base}/temp", "-cp",
             f"{home}/bin/bootstrap.jar:{home}/bin/tomcat-juli.jar", "org.apache.catalina.startup.Bootstrap", "start"],
            base, [("127.0.0.1", port)])

    def asked(self):
        """The status and the Authorization of each request, without the log's escapes."""
        return [tuple(line.replace('\\"', '"').split(" ", 1)) for line in self.log_file.read_text().splitlines()]


@pytest.fixture
def gateway(page_lab, tmp_path):
    with contextlib.contextmanager(held)(Cardea, page_lab, tmp_path) as make:
        yield make()


def answered(gateway, server, **settings):
    block = {"username": USER, "password": gateway.secret("password", PASSWORD), **settings}
    return identified(gateway, server, {"digest": block}).start()


@pytest.mark.parametrize("algorithms, word", [("SHA-256,MD5", "SHA-256"), ("MD5", "MD5")])
def test_tomcat(gateway, tmp_path, algorithms, word):
    with contextlib.closing(Tomcat(tmp_path, algorithms=algorithms)) as server:
        answered(gateway, server, algorithms=["sha-256", "md5"])
        for _ in range(4):
            answer = gateway.get("/page.txt")
            assert (answer.status, answer.body) == (200, b"the page"), (answer, gateway.text(), server.asked())
        # A request is logged behind its answer.
        eventually(lambda: len(server.asked()) >= 5, what="the log")
        asked = server.asked()
        assert [status for status, _ in asked] == ["401"] + ["200"] * 4
        assert all(f"algorithm={word}" in field for _, field in asked[1:]), asked
        numbers = [field.partition("nc=")[2][:8] for _, field in asked[1:]]
        assert numbers == [f"{number:08x}" for number in range(1, 5)]


def test_many_at_once(gateway, tmp_path):
    with contextlib.closing(Tomcat(tmp_path)) as server:
        answered(gateway, server)
        statuses = together(20, lambda _: gateway.get("/page.txt").status)
        assert statuses == [200] * 20, (statuses, server.asked())


def test_a_nonce_that_has_ended_is_replaced_unseen(gateway, tmp_path):
    with contextlib.closing(Tomcat(tmp_path, nonceValidity="1500")) as server:
        answered(gateway, server)
        statuses = []

        def has_met_three():
            statuses.append(gateway.get("/page.txt").status)
            return len({field.partition('nonce="')[2].partition('"')[0] for _, field in server.asked() if "nonce" in field}) >= 3

        eventually(has_met_three, what="three nonces")
        assert set(statuses) == {200}, (statuses, server.asked())
