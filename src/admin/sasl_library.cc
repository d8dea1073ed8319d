// SPDX-License-Identifier: Apache-2.0
//
// libsasl2, as memcached uses it. It is loaded when -S asks for it: it comes with plug-ins and
// their databases, which a server without -S does not pay.
#include "admin/sasl.h"

#ifdef WARPCACHE_HAVE_SASL
#include <dlfcn.h>
#include <sasl/sasl.h>

#include <cstdlib>
#include <string>
#endif

namespace warpcache::admin {

#ifdef WARPCACHE_HAVE_SASL
namespace {

struct Functions {
  decltype(&::sasl_set_path) set_path = nullptr;
  decltype(&::sasl_server_init) server_init = nullptr;
  decltype(&::sasl_server_new) server_new = nullptr;
  decltype(&::sasl_server_start) server_start = nullptr;
  decltype(&::sasl_server_step) server_step = nullptr;
  decltype(&::sasl_listmech) listmech = nullptr;
  decltype(&::sasl_dispose) dispose = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

bool find_all(void* library, Functions& sasl) {
  return find(library, "sasl_set_path", &sasl.set_path) &&
         find(library, "sasl_server_init", &sasl.server_init) &&
         find(library, "sasl_server_new", &sasl.server_new) &&
         find(library, "sasl_server_start", &sasl.server_start) &&
         find(library, "sasl_server_step", &sasl.server_step) &&
         find(library, "sasl_listmech", &sasl.listmech) &&
         find(library, "sasl_dispose", &sasl.dispose);
}

// Failed logins are counted in `stats`; the library's own words would flood the log.
int say_nothing(void*, int, const char*) { return SASL_OK; }

class LibraryExchange final : public SaslLibrary::Exchange {
 public:
  LibraryExchange(const Functions& sasl, sasl_conn_t* connection)
      : sasl_(sasl), connection_(connection) {}
  LibraryExchange(const LibraryExchange&) = delete;
  LibraryExchange& operator=(const LibraryExchange&) = delete;
  ~LibraryExchange() override { sasl_.dispose(&connection_); }

  SaslLibrary::Verdict start(const std::string& mechanism, std::string_view data,
                             std::string* challenge) override {
    const char* text = nullptr;
    unsigned size = 0;
    // Without data the library must be told so: it then asks for it.
    const int result =
        sasl_.server_start(connection_, mechanism.c_str(), data.empty() ? nullptr : data.data(),
                           static_cast<unsigned>(data.size()), &text, &size);
    return verdict_of(result, text, size, challenge);
  }

  SaslLibrary::Verdict step(std::string_view data, std::string* challenge) override {
    const char* text = nullptr;
    unsigned size = 0;
    const int result = sasl_.server_step(connection_, data.data(),
                                         static_cast<unsigned>(data.size()), &text, &size);
    return verdict_of(result, text, size, challenge);
  }

  std::string mechanisms() override {
    const char* text = nullptr;
    unsigned size = 0;
    const int result = sasl_.listmech(connection_, nullptr, "", " ", "", &text, &size, nullptr);
    return result == SASL_OK && text != nullptr ? std::string(text, size) : "";
  }

 private:
  static SaslLibrary::Verdict verdict_of(int result, const char* text, unsigned size,
                                         std::string* challenge) {
    if (result == SASL_OK) return SaslLibrary::Verdict::kAccepted;
    if (result != SASL_CONTINUE) return SaslLibrary::Verdict::kRefused;
    if (text != nullptr) challenge->assign(text, size);
    return SaslLibrary::Verdict::kContinue;
  }

  const Functions& sasl_;
  sasl_conn_t* connection_;
};

class Library final : public SaslLibrary {
 public:
  explicit Library(const Functions& sasl) : sasl_(sasl) {}

  std::unique_ptr<SaslLibrary::Exchange> begin() override {
    sasl_conn_t* connection = nullptr;
    const int result =
        sasl_.server_new("memcached", nullptr, nullptr, nullptr, nullptr, nullptr, 0, &connection);
    if (result != SASL_OK) return nullptr;
    return std::make_unique<LibraryExchange>(sasl_, connection);
  }

 private:
  const Functions& sasl_;
};

}  // namespace

std::unique_ptr<SaslLibrary> load_sasl_library(std::string* why) {
  // The library keeps pointers to these.
  static Functions sasl;
  static const sasl_callback_t kCallbacks[] = {
      {SASL_CB_LOG, reinterpret_cast<int (*)()>(reinterpret_cast<void (*)()>(say_nothing)),
       nullptr},
      {SASL_CB_LIST_END, nullptr, nullptr}};
  void* const library = dlopen("libsasl2.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr || !find_all(library, sasl)) {
    *why = "libsasl2 is not installed";
    return nullptr;
  }
  if (const char* const path = std::getenv("SASL_CONF_PATH")) {
    std::string copy(path);
    (void)sasl.set_path(SASL_PATH_TYPE_CONFIG, copy.data());
  }
  if (sasl.server_init(kCallbacks, "memcached") != SASL_OK) {
    *why = "it refuses its configuration";
    return nullptr;
  }
  return std::make_unique<Library>(sasl);
}

#else

std::unique_ptr<SaslLibrary> load_sasl_library(std::string* why) {
  *why = "this server was built without it";
  return nullptr;
}

#endif

}  // namespace warpcache::admin
