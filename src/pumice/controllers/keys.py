"""New RSA key pairs for the ssh plugin: the one thing controllers need that is made by chance, so it is passed to them."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from pumice.controllers.volcano.job.plugins import SshKeyPair

BITS = 2048


def rsa_key_pair() -> SshKeyPair:
    key = rsa.generate_private_key(public_exponent=65537, key_size=BITS)
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return SshKeyPair(private.decode(), public.decode())
