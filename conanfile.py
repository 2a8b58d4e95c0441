import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

required_conan_version = ">=2.0"


class LatchkeyConan(ConanFile):
    name = "latchkey"
    package_type = "library"
    license = "Apache-2.0"
    description = "Distributed locks on Redis for C++20, compatible with Redisson"
    topics = ("distributed-lock", "redis", "redisson", "asio", "lease")
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "tools": [True, False]}
    default_options = {"shared": False, "fPIC": True, "tools": False}
    exports = "CMakeLists.txt"
    exports_sources = "CMakeLists.txt", "cmake/*", "include/*", "lib/*", "tools/*", "LICENSE"

    def set_version(self):
        # Where it stands once.
        text = load(self, os.path.join(self.recipe_folder, "CMakeLists.txt"))
        self.version = re.search(r"project\(latchkey VERSION ([0-9.]+)", text)[1]

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")

    def requirements(self):
        # Its headers are part of ours: who links latchkey compiles with the same Boost, or does not link.
        self.requires("boost/1.81.0", transitive_headers=True)
        self.requires("hiredis/1.2.0")
        self.requires("openssl/[>=3 <4]")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("latchkey is written for Linux alone: docs/porting.md")
        if self.settings.get_safe("compiler.cppstd"):
            check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False  # the presets of a source tree are the developer's
        toolchain.cache_variables.update({"BUILD_TESTING": False, "LATCHKEY_EXAMPLES": False, "LATCHKEY_BENCH": False,
                                          "LATCHKEY_TESTING": False, "LATCHKEY_TOOLS": bool(self.options.tools)})
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        # Conan writes what CMake and pkg-config need.
        for folder in ("lib/cmake", "lib/pkgconfig", "share/doc"):
            rmdir(self, os.path.join(self.package_folder, *folder.split("/")))

    def package_info(self):
        self.cpp_info.libs = ["latchkey"]
        self.cpp_info.set_property("cmake_file_name", "latchkey")
        self.cpp_info.set_property("cmake_target_name", "latchkey::latchkey")
        self.cpp_info.set_property("pkg_config_name", "latchkey")
        self.cpp_info.system_libs = ["pthread"]
        self.cpp_info.requires = ["boost::headers", "hiredis::hiredis", "openssl::ssl"]
