// Runs that are killed, resumed and compared with one that was not.
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace tessera::testing {

struct KillTrial {
  std::function<std::vector<std::string>(const std::string& runs)> train;  // the program's words for a run below `runs`
  std::function<std::string(const std::string& runs)> run_in;  // that run's folder
  std::function<void(const std::string& runs)> forget;  // removes `runs`
  std::vector<std::string> environment = {};  // NAME=value, of every program
  std::string straight = {};  // result_of() the run that is not killed
  std::chrono::milliseconds whole{};  // that it took
};

// Trains below "straight", which tells the trial its result and how long it took.
void run_straight(KillTrial& trial);
// One run, killed at each of these places (train/checkpoint/kill_point.h) in turn.
void expect_survives(const KillTrial& trial, std::initializer_list<const char*> places);
// Runs killed at random moments, until there were so many kills. Those before there was a run are not counted.
void expect_survives(const KillTrial& trial, int kills, unsigned seed);

}  // namespace tessera::testing
