// SPDX-License-Identifier: Apache-2.0
#include "io/ucx/ucx_choice.h"

#include <gtest/gtest.h>

namespace warpcache::io {
namespace {

class UcxChoiceTest : public testing::Test {
 protected:
  UcxChoiceTest() { EXPECT_EQ(ucp_config_read(nullptr, nullptr, &config_), UCS_OK); }
  ~UcxChoiceTest() override { ucp_config_release(config_); }

  ucp_config_t* config_ = nullptr;
};

TEST_F(UcxChoiceTest, ThisUcxTakesEachSetting) {
  for (const char* const transports : {"", "tcp", "posix,tcp", "sysv,tcp", "all", "^tcp"}) {
    EXPECT_EQ(choose_ucx_settings(config_, transports), "") << transports;
  }
}

TEST_F(UcxChoiceTest, ARefusedSettingIsToldWithItsValue) {
  EXPECT_EQ(set_ucx(config_, "SEG_SIZE", "8192"), "");
  const std::string refused = set_ucx(config_, "SEG_SIZE", "nonsense");
  EXPECT_NE(refused.find("SEG_SIZE=nonsense: "), std::string::npos) << refused;
}

}  // namespace
}  // namespace warpcache::io
