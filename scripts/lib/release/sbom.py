"""A list of what a release consists of and needs, in the words of SPDX 2.3."""

import hashlib
import json
import re
import subprocess
import tarfile

from .refusal import Refusal

# What the library is linked with or compiled from. The versions are those of the headers of this machine.
NEEDED = {
    "boost": ("Boost", "BSL-1.0", "boost/version.hpp", "BOOST_LIB_VERSION", r'"(\d+)_(\d+)(?:_(\d+))?"'),
    "hiredis": ("hiredis", "BSD-3-Clause", "hiredis/hiredis.h",
                "HIREDIS_MAJOR.HIREDIS_MINOR.HIREDIS_PATCH", r"(\d+)\s*\.\s*(\d+)\s*\.\s*(\d+)"),
    "openssl": ("OpenSSL", "Apache-2.0", "openssl/opensslv.h",
                "OPENSSL_VERSION_MAJOR.OPENSSL_VERSION_MINOR.OPENSSL_VERSION_PATCH", r"(\d+)\s*\.\s*(\d+)\s*\.\s*(\d+)"),
}


def version_of(header, macros, pattern):
    # A space around each dot, or the preprocessor reads one number.
    text = f"#include <{header}>\nlatchkey_asks {macros.replace('.', ' . ')}\n"
    done = subprocess.run(["c++", "-E", "-P", "-x", "c++", "-"], input=text, capture_output=True, text=True, timeout=60)
    found = re.search(rf"latchkey_asks\s+{pattern}", done.stdout)
    if not found:
        raise Refusal(f"{header} does not say its version:\n{done.stderr[-1000:]}")
    return ".".join(part or "0" for part in found.groups())


def package(identifier, name, version, licence, **more):
    return {"SPDXID": f"SPDXRef-Package-{identifier}", "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION", **more}


def files_of(tarball):
    with tarfile.open(tarball) as archive:
        for number, member in enumerate(sorted((one for one in archive if one.isfile()), key=lambda one: one.name)):
            data = archive.extractfile(member).read()
            yield {"SPDXID": f"SPDXRef-File-{number}", "fileName": "./" + member.name.partition("/")[2],
                   "checksums": [{"algorithm": name, "checksumValue": hashlib.new(name.lower(), data).hexdigest()}
                                 for name in ("SHA1", "SHA256")],
                   "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION"}


def document(tarball, version, date):
    files = list(files_of(tarball))
    sums = sorted(one["checksums"][0]["checksumValue"] for one in files)
    ours = package("latchkey", "latchkey", version, "Apache-2.0", packageFileName=tarball.name)
    ours |= {"filesAnalyzed": True, "licenseInfoFromFiles": ["NOASSERTION"],
             "packageVerificationCode": {"packageVerificationCodeValue": hashlib.sha1("".join(sums).encode()).hexdigest()},
             "checksums": [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(tarball.read_bytes()).hexdigest()}]}
    others = [package(identifier, name, version_of(header, macros, pattern), licence)
              for identifier, (name, licence, header, macros, pattern) in NEEDED.items()]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", ours["SPDXID"])]
    relations += [(ours["SPDXID"], "DEPENDS_ON", one["SPDXID"]) for one in others]
    relations += [(ours["SPDXID"], "CONTAINS", one["SPDXID"]) for one in files]
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"latchkey-{version}",
        # Its name must be unlike that of any other document: the tarball decides it.
        "documentNamespace": f"https://spdx.org/spdxdocs/latchkey-{version}-{ours['checksums'][0]['checksumValue'][:32]}",
        "creationInfo": {"created": date, "creators": ["Tool: latchkey-scripts-release"]},
        "packages": [ours, *others], "files": files,
        "relationships": [{"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other} for one, how, other in relations],
    }


def write(tarball, version, date, folder):
    path = folder / f"latchkey-{version}.spdx.json"
    path.write_text(json.dumps(document(tarball, version, date), indent=1) + "\n", encoding="utf-8")
    return path
