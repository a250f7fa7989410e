"""What the certificate of our own authority states."""

from __future__ import annotations

from cryptography import x509

from pumice.client.certificates import Authority


def test_its_key_signs_certificates_and_is_no_other_authoritys() -> None:
    made = x509.load_pem_x509_certificate(Authority(1_800_000_000.0, 10).pem)
    usage = made.extensions.get_extension_for_class(x509.KeyUsage)
    stated = {
        name
        for name in ("digital_signature", "content_commitment", "key_encipherment", "key_cert_sign", "crl_sign")
        if getattr(usage.value, name)
    }
    assert usage.critical and stated == {"digital_signature", "key_cert_sign", "crl_sign"}
    limits = made.extensions.get_extension_for_class(x509.BasicConstraints)
    assert limits.critical and limits.value.ca and limits.value.path_length == 0
