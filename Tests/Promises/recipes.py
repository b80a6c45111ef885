"""The files of config/recipes, turned to the lab: the very steps that users read are what is tested."""

import json
import pathlib

import yaml

from harness import Cardea, merge

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "config" / "recipes"


def recipe(name, texts):
    """The one identity's block of a file, with `texts` replaced wherever they stand."""
    (identity,) = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())["identities"].values()
    text = json.dumps(identity["recipe"])
    for old, new in texts.items():
        assert old in text, f"{name}.yaml does not have {old}"
        text = text.replace(old, new)
    return json.loads(text)


class RecipeCardea(Cardea):
    """A gateway whose WebGate identity is the recipe instead of the scheme of its own."""

    def webgate(self, identity=None, token=None, route=None, changes=None, password=None):
        block = recipe(
            "oam-webgate",
            {
                "https://oam.example.com:14100": f"http://{self.lab.issuer}",
                "EdgeProxy": self.lab.client_id,
                "svc-hr": self.lab.user,
                "file:/run/secrets/hr-password": self.secret("hr-password", password or self.lab.password),
            },
        )
        agent = {"headers": {"set": {"User-Agent": f"{self.lab.user_agent_prefix}/1.0"}}}
        who = {"recipe": merge(block, identity)}
        if token:
            who["token"] = token
        routes = [merge(merge(self.route("hr", self.lab.listen), agent), route)]
        self.config = merge(self.frame({"identities": {"hr": who}, "routes": routes}), changes)
        return self
