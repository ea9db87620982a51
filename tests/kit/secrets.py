"""Secrets of every shape, for the tests that search for them in whatever is written."""

from __future__ import annotations

# Made up; put together here so that no scanner of secrets takes this file for a leak. What is searched for is the
# secret part alone.
X = "Zq7Rt9Kp2Lm4Wx8Vn3Bc5Yd"
HEX = "9f86d081884c7d659a2feaa0c55ad015"
SHAPED = {
    "aws access key": "AKIA" + "IOSFODNN7EXAMPLQ",
    "aws session key": "ASIA" + "Y34FZKBOKMUTVV7A",
    "aws secret key": "wJalrXUtnFEMI/K7MDENG" + "/bPxRfiCYzEXAMPLEKE",
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + "dBjftJeZ4CVP-mB92K27uhbU",
    "openai": "sk-proj-" + X,
    "anthropic": "sk-ant-api03-" + X,
    "stripe": "sk_live_" + X,
    "stripe hook": "whsec_" + X,
    "github": "ghp_" + X + "abcd",
    "github fine": "github_pat_" + X + "_" + X,
    "gitlab": "glpat-" + X,
    "slack": "xoxb-" + "123456789012-" + X,
    "slack app": "xapp-" + "1-A012-" + X,
    "google": "AIza" + "SyD" + X + X[:10],
    "google oauth": "ya29." + X,
    "google client": "GOCSPX-" + X,
    "sendgrid": "SG." + X + "." + X,
    "npm": "npm_" + X,
    "pypi": "pypi-" + X,
    "hugging face": "hf_" + X,
    "digitalocean": "dop_v1_" + HEX + HEX,
    "shopify": "shpat_" + HEX,
    "vault": "hvs." + X,
    "twilio": "SK" + HEX,
    "mailgun": "key-" + HEX,
    "databricks": "dapi" + HEX,
    "telegram": "123456789:" + X + X[:11],
    "age": "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "random": X + X,
}
