// The part of DiskTier that makes room: new segments, and what becomes of old
// ones.

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "kvstore/disk/disk_copy.h"
#include "kvstore/disk/disk_tier.h"

namespace penstock {

void DiskTier::OpenSegment() {
  if (opening_ || !cleaning_.empty()) return;
  if (index_.active()) SealActive();
  if (!index_.MayOpen()) {
    Clean();
    DropCleaned();
    // What is being written cannot go yet; its end asks again.
    if (!index_.MayOpen()) return;
  }
  opening_ = true;
  const uint64_t number = ++last_segment_;
  auto file = std::make_shared<std::shared_ptr<SegmentFile>>();
  auto make = [this, number, file]() -> absl::Status {
    auto made = SegmentFile::Create(
        directory_->path(), {identity_, number}, options_.worker.hasher,
        {.sync_each_page = options_.sync == DiskSync::kPage});
    if (!made.ok()) return made.status();
    *file = *std::move(made);
    if (options_.sync == DiskSync::kNever) return absl::OkStatus();
    return directory_->Sync();
  };
  io_->Submit({std::move(make), [this, number, file](absl::Status status) {
                 Post([this, number, file, status = std::move(status)] {
                   OnOpened(number, *file, status);
                 });
               }});
}

void DiskTier::OnOpened(uint64_t number, std::shared_ptr<SegmentFile> file,
                        const absl::Status& status) {
  opening_ = false;
  if (!status.ok()) {
    FailWrites(status);
    return;
  }
  files_[number] = std::move(file);
  index_.Open(number);
  // So that there is room for the one after it.
  Clean();
}

void DiskTier::SealActive() { SyncIfDone(index_.Seal()); }

void DiskTier::SyncIfDone(uint64_t number) {
  if (options_.sync != DiskSync::kSegment || !index_.Done(number)) return;
  io_->Submit({[file = files_.at(number)] { return file->Sync(); },
               [](const absl::Status& status) {
                 if (status.ok()) return;
                 Log(LogLevel::kWarning, "a segment was not synced",
                     {{"why", std::string(status.message())}});
               }});
}

void DiskTier::Clean() {
  SegmentIndex::Cleaning plan = index_.PlanCleaning();
  cleaning_ = std::move(plan.segments);
  for (BlockHash hash : plan.survivors) {
    const std::optional<SegmentSlot> to = index_.TakeSlot();
    if (!to.has_value()) {
      index_.Forget(hash);
      continue;
    }
    auto copy = std::make_shared<DiskCopy>();
    copy->hash = hash;
    copy->from = *index_.Find(hash);
    copy->to = *to;
    copy->source = files_.at(copy->from.segment);
    copy->target = files_.at(to->segment);
    copies_.push_back(std::move(copy));
  }
}

void DiskTier::StartCopy(std::shared_ptr<DiskCopy> copy) {
  ++copying_;
  auto ended = [this, copy](absl::Status status) {
    copy->bytes = {};
    Post([this, copy, status = std::move(status)] { OnCopied(*copy, status); });
  };
  DiskIo::Transfer read = copy->ReadIt();
  io_->Submit({std::move(read), [this, copy, ended](absl::Status status) {
                 if (status.ok()) status = copy->Turn(options_.worker.hasher);
                 if (!status.ok()) {
                   ended(std::move(status));
                   return;
                 }
                 io_->Submit({copy->WriteIt(), ended});
               }});
}

void DiskTier::OnCopied(const DiskCopy& copy, const absl::Status& status) {
  --copying_;
  index_.Settle(copy.to);
  SyncIfDone(copy.to.segment);
  // It may have been found bad or stored anew meanwhile.
  if (index_.Find(copy.hash) != copy.from) return;
  if (status.ok()) {
    ++stats_.copied;
    index_.Move(copy.hash, copy.to);
    return;
  }
  if (absl::IsDataLoss(status)) ++stats_.bad_pages;
  index_.Forget(copy.hash);
}

void DiskTier::DropCleaned() {
  if (copying_ > 0 || !copies_.empty()) return;
  for (uint64_t number : std::exchange(cleaning_, {})) {
    index_.Drop(number);
    io_->Submit(
        {[file = std::move(files_.at(number))] { return file->Remove(); },
         [](const absl::Status& status) {
           if (status.ok()) return;
           Log(LogLevel::kWarning, "a segment was not removed",
               {{"why", std::string(status.message())}});
         }});
    files_.erase(number);
  }
}

}  // namespace penstock
