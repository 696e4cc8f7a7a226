"""Make what TLS and node keys need: a CA, a certificate for the SuperLink, a key pair a node.

python certificates.py keys --host localhost --host 192.168.1.10 --nodes 3
"""

import argparse
import datetime
import ipaddress
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PEM, OPENSSH = serialization.Encoding.PEM, serialization.Encoding.OpenSSH
DAYS = 365


def main() -> None:
    """Read the command line and write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder that is made")
    parser.add_argument(
        "--host",
        action="append",
        help="name or address of the SuperLink, may be repeated (default: localhost, 127.0.0.1)",
    )
    parser.add_argument("--nodes", type=int, default=3, help="how many key pairs")
    given = parser.parse_args()
    given.folder.mkdir(mode=0o700, parents=True)
    (given.folder / ".gitignore").write_text("*\n")
    make_certificates(given.folder, given.host or ["localhost", "127.0.0.1"])
    for node in range(given.nodes):
        make_node_key(given.folder / f"node{node}")
    print(
        f"{given.folder}: ca.crt for everybody, server.* for the SuperLink, node* for one node each"
    )


def make_certificates(folder: Path, hosts: list[str]) -> None:
    """Write ca.crt, and server.crt with server.key; the CA's own key is thrown away."""
    ca_key, server_key = (ec.generate_private_key(ec.SECP384R1()) for _ in range(2))
    issuer, subject = _name("federation CA"), _name(hosts[0])
    ca = (
        _builder(issuer, issuer, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    server = (
        _builder(issuer, subject, server_key.public_key())
        .add_extension(x509.SubjectAlternativeName([_host(one) for one in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    (folder / "ca.crt").write_bytes(ca.public_bytes(PEM))
    (folder / "server.crt").write_bytes(server.public_bytes(PEM))
    _write_key(folder / "server.key", server_key, PEM, serialization.PrivateFormat.PKCS8)


def make_node_key(path: Path) -> None:
    """Write a node's private key, and beside it the public one, which is to be registered."""
    key = ec.generate_private_key(ec.SECP384R1())
    _write_key(path, key, PEM, serialization.PrivateFormat.OpenSSH)
    public = key.public_key().public_bytes(OPENSSH, serialization.PublicFormat.OpenSSH)
    path.with_suffix(".pub").write_bytes(public + b"\n")


def _builder(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    begins = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=5)
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + datetime.timedelta(days=DAYS))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(
    path: Path,
    key: ec.EllipticCurvePrivateKey,
    encoding: serialization.Encoding,
    form: serialization.PrivateFormat,
) -> None:
    """Write a private key that only its owner can read, from the first byte on."""
    data = key.private_bytes(encoding, form, serialization.NoEncryption())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main()
