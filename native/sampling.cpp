#include "sampling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

namespace kaiwa {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Tokens this many nats below the best one are never drawn: a whole vocabulary of them (2^18) weighs less than 2^-53,
// the smallest step of a draw.
constexpr float kUnreachable = 50.0f;

// The highest score. Eight lanes, so that the compiler can use vector registers.
float highest(std::span<const float> scores) {
    constexpr size_t kLanes = 8;
    float best[kLanes];
    unsigned is_wrong[kLanes] = {};
    std::fill_n(best, kLanes, -kInfinity);
    const auto look = [&](size_t lane, float score) {
        best[lane] = score > best[lane] ? score : best[lane];
        is_wrong[lane] |= score < kInfinity ? 0u : 1u;  // NaN compares false
    };
    size_t i = 0;
    for (; i + kLanes <= scores.size(); i += kLanes)
        for (size_t lane = 0; lane < kLanes; ++lane) look(lane, scores[i + lane]);
    for (; i < scores.size(); ++i) look(0, scores[i]);

    if (std::any_of(is_wrong, is_wrong + kLanes, [](unsigned wrong) { return wrong != 0; }))
        throw std::runtime_error("the model computed a logit that is NaN or infinite");
    const float top = *std::max_element(best, best + kLanes);
    if (top == -kInfinity) throw std::runtime_error("the model left no token to choose: every logit is -inf");
    return top;
}

// splitmix64's finalizer (Steele, Lea, Flood 2014): every bit of the result depends on every bit of `x`.
uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

}  // namespace

Logprobs log_probabilities(std::span<const float> logits, int32_t token_id, int num_best, const Kernels& kernels) {
    // 1. The logarithm of the sum over the vocabulary, which turns logits into logarithms of probabilities.
    const float top = highest(logits);
    double total = 0.0;
    constexpr size_t kChunk = 1024;  // whose sum single precision holds well
    const size_t whole = logits.size() / 16 * 16;
    for (size_t i = 0; i < whole; i += kChunk)
        total += kernels.sum_exponentials(logits.data() + i, int(std::min(kChunk, whole - i)), top);
    for (size_t i = whole; i < logits.size(); ++i) total += std::exp(logits[i] - top);
    const float shift = top + float(std::log(total));

    // 2. The best ones: a heap whose first is the worst of those that are in.
    const auto is_better = [](const auto& a, const auto& b) {
        return a.second != b.second ? a.second > b.second : a.first < b.first;
    };
    const size_t count = std::min(size_t(num_best), logits.size());
    Logprobs found{logits[size_t(token_id)] - shift, {}};
    found.best.reserve(count + 1);
    for (size_t i = 0; count > 0 && i < logits.size(); ++i) {
        if (found.best.size() == count && !(logits[i] > found.best.front().second)) continue;
        found.best.emplace_back(int32_t(i), logits[i]);
        std::push_heap(found.best.begin(), found.best.end(), is_better);
        if (found.best.size() <= count) continue;
        std::pop_heap(found.best.begin(), found.best.end(), is_better);
        found.best.pop_back();
    }
    std::sort_heap(found.best.begin(), found.best.end(), is_better);
    for (auto& [id, logit] : found.best) logit -= shift;
    return found;
}

Sampler::Sampler(SamplingOptions options, int vocab_size)
    : options_(std::move(options)), vocab_size_(size_t(vocab_size)) {
    if (vocab_size < 1) throw std::invalid_argument("a vocabulary has at least one token");
    for (const auto& [token_id, bias] : options_.logit_bias) check_token(token_id);
}

void Sampler::check_token(int32_t token_id) const {
    if (token_id >= 0 && size_t(token_id) < vocab_size_) return;
    throw std::out_of_range("token " + std::to_string(token_id) + " is not in the vocabulary of " +
                            std::to_string(vocab_size_));
}

void Sampler::set_prompt(std::span<const int32_t> token_ids) {
    for (const int32_t token_id : token_ids) check_token(token_id);
    if (options_.repetition_penalty == 1.0f) return;
    for (const int32_t token_id : token_ids) answer_counts_.try_emplace(token_id, 0);
}

int32_t Sampler::sample(std::span<const float> logits, std::span<const uint8_t> allowed) {
    if (logits.size() != vocab_size_)
        throw std::invalid_argument(std::to_string(logits.size()) + " logits for a vocabulary of " +
                                    std::to_string(vocab_size_));
    if (!allowed.empty() && 8 * allowed.size() < vocab_size_)
        throw std::invalid_argument(std::to_string(8 * allowed.size()) + " bits say what is allowed of a vocabulary of " +
                                    std::to_string(vocab_size_));
    const bool is_adjusted = has_penalties() || !options_.logit_bias.empty() || !allowed.empty();
    const auto scores = is_adjusted ? adjust(logits, allowed) : logits;
    const float best = highest(scores);
    const bool is_greedy = options_.greedy || options_.temperature == 0.0f;
    const int32_t token_id =
        is_greedy ? int32_t(std::find(scores.begin(), scores.end(), best) - scores.begin()) : draw(scores, best);
    if (has_penalties()) ++answer_counts_[token_id];
    return token_id;
}

bool Sampler::has_penalties() const {
    return options_.repetition_penalty != 1.0f || options_.presence_penalty != 0.0f ||
           options_.frequency_penalty != 0.0f;
}

std::span<const float> Sampler::adjust(std::span<const float> logits, std::span<const uint8_t> allowed) {
    scores_.assign(logits.begin(), logits.end());
    for (const auto& [token_id, bias] : options_.logit_bias) scores_[size_t(token_id)] += bias;
    if (has_penalties()) penalize();
    if (allowed.empty()) return scores_;
    uint8_t any = 0;
    for (size_t first = 0; first < vocab_size_; first += 8) {
        const uint8_t bits = allowed[first / 8];
        any |= bits;
        if (bits == 0xFF) continue;
        for (size_t i = first, end = std::min(first + 8, vocab_size_); i < end; ++i)
            if (!(bits >> (i - first) & 1)) scores_[i] = -kInfinity;
    }
    if (any == 0) throw std::invalid_argument("no token is allowed");
    return scores_;
}

void Sampler::penalize() {
    for (const auto& [token_id, count] : answer_counts_) {
        float& score = scores_[size_t(token_id)];
        score = score > 0.0f ? score / options_.repetition_penalty : score * options_.repetition_penalty;
        if (count > 0) score -= options_.presence_penalty + options_.frequency_penalty * float(count);
    }
}

int32_t Sampler::draw(std::span<const float> scores, float best) {
    // 1. What can be left out by its score alone, before anything costs an exponential.
    float floor = best - kUnreachable * options_.temperature;
    if (options_.top_k > 0 && size_t(options_.top_k) < scores.size()) floor = std::max(floor, kth_best(scores));
    if (options_.min_p > 0.0f && options_.top_p >= 1.0f)
        floor = std::max(floor, best + options_.temperature * std::log(options_.min_p));

    // 2. What is left out by its probability.
    gather(scores, best, floor);
    if (options_.top_p < 1.0f) keep_nucleus();

    // 3. The draw: a point on the line that the weights make when laid end to end.
    double total = 0.0;
    for (const Candidate& candidate : candidates_) total += candidate.weight;
    double point = next_uniform() * total;
    for (const Candidate& candidate : candidates_) {
        point -= candidate.weight;
        if (point < 0.0) return candidate.token_id;
    }
    return candidates_.back().token_id;  // rounding took the point past the end
}

// The score of the k-th best token. Tokens that share it are all kept, as transformers does.
float Sampler::kth_best(std::span<const float> scores) {
    const size_t k = size_t(options_.top_k);
    const size_t capacity = std::max<size_t>(2 * k, 1024);
    const auto cut = [&] {
        std::nth_element(leaders_.begin(), leaders_.begin() + ptrdiff_t(k - 1), leaders_.end(), std::greater<>());
        leaders_.resize(k);
        return leaders_.back();
    };
    leaders_.clear();
    leaders_.reserve(capacity);
    float bar = -kInfinity;
    for (const float score : scores) {
        if (score <= bar) continue;
        leaders_.push_back(score);
        if (leaders_.size() == capacity) bar = cut();
    }
    return leaders_.size() >= k ? cut() : -kInfinity;
}

void Sampler::gather(std::span<const float> scores, float best, float floor) {
    candidates_.clear();
    for (size_t i = 0; i < scores.size(); ++i) {
        if (scores[i] < floor) continue;
        const float weight = std::exp((scores[i] - best) / options_.temperature);
        candidates_.push_back({scores[i], weight, int32_t(i)});
    }
}

// The smallest set of most probable tokens whose share reaches top_p, the token that crosses it included, without what
// min_p leaves out. Lower ids win ties.
void Sampler::keep_nucleus() {
    double total = 0.0;
    for (const Candidate& candidate : candidates_) total += candidate.weight;

    // Even all together, tokens below this weight cannot fill what the nucleus leaves: none of them is in it.
    const double negligible = (1.0 - double(options_.top_p)) * total / double(candidates_.size());
    const double least = std::min(1.0, std::max(negligible, double(options_.min_p)));
    std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.weight < least; });

    // A heap gives the best ones in order without sorting the rest; popped candidates collect at the back.
    const auto is_worse = [](const Candidate& a, const Candidate& b) {
        return a.score != b.score ? a.score < b.score : a.token_id > b.token_id;
    };
    std::make_heap(candidates_.begin(), candidates_.end(), is_worse);
    auto end = candidates_.end();
    double share = 0.0;
    do {
        std::pop_heap(candidates_.begin(), end, is_worse);
        share += (--end)->weight;
    } while (end != candidates_.begin() && share < double(options_.top_p) * total);
    candidates_.erase(candidates_.begin(), end);
}

// A number in [0, 1), a function of the seed and of how many were drawn before.
double Sampler::next_uniform() {
    const uint64_t bits = mix(mix(options_.seed) + num_draws_++);
    return double(bits >> 11) * 0x1p-53;
}

}  // namespace kaiwa
