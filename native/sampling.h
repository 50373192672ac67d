// How the next token is chosen from a model's logits. Knows nothing about models, text or threads.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/kernels.h"

namespace kaiwa {

// The options of one answer, already checked. Off is: top_k 0, top_p 1, min_p 0, repetition_penalty 1, the others 0.
struct SamplingOptions {
    bool greedy = false;
    float temperature = 1.0f;
    int top_k = 0;
    float top_p = 1.0f;
    float min_p = 0.0f;
    float repetition_penalty = 1.0f;
    float presence_penalty = 0.0f;
    float frequency_penalty = 0.0f;
    std::vector<std::pair<int32_t, float>> logit_bias;  // what is added to the logits of some tokens
    uint64_t seed = 0;
};

// Natural logarithms of probabilities: of one token, and of the most probable ones, best first; of equals, the lower id.
struct Logprobs {
    float sampled;
    std::vector<std::pair<int32_t, float>> best;
};
Logprobs log_probabilities(std::span<const float> logits, int32_t token_id, int num_best, const Kernels& kernels);

// Draws the tokens of one answer. The n-th draw depends on the seed, n and the logits only, so that an answer is the
// same whatever else the machine computes.
//
// The order is that of transformers: bias, penalties, temperature, top_k, top_p, min_p; what is not allowed goes first.
class Sampler {
public:
    // Throws std::invalid_argument for a vocabulary without tokens, std::out_of_range for a bias of a token that is not
    // in it.
    Sampler(SamplingOptions options, int vocab_size);

    // The prompt's tokens, which the repetition penalty counts.
    // Throws std::out_of_range for a token that is not in the vocabulary.
    void set_prompt(std::span<const int32_t> token_ids);

    // The next token, given one logit for each token of the vocabulary; -inf marks one that must not be drawn. Where
    // `allowed` is not empty, it has a bit for each token, of which the first byte's lowest is the first: those without
    // must not be drawn either.
    //
    // Throws std::invalid_argument for another number of logits or too few bits, and std::runtime_error where a score is
    // NaN or +inf, or all are -inf.
    int32_t sample(std::span<const float> logits, std::span<const uint8_t> allowed = {});

private:
    struct Candidate {
        float score;
        float weight;  // its probability, relative to that of the most probable token
        int32_t token_id;
    };

    bool has_penalties() const;
    std::span<const float> adjust(std::span<const float> logits, std::span<const uint8_t> allowed);
    void penalize();
    void check_token(int32_t token_id) const;
    int32_t draw(std::span<const float> scores, float best);
    float kth_best(std::span<const float> scores);
    void gather(std::span<const float> scores, float best, float floor);
    void keep_nucleus();
    double next_uniform();

    SamplingOptions options_;
    size_t vocab_size_;
    uint64_t num_draws_ = 0;
    std::unordered_map<int32_t, int> answer_counts_;  // 0 for tokens that only the prompt has
    std::vector<float> scores_;
    std::vector<float> leaders_;
    std::vector<Candidate> candidates_;
};

}  // namespace kaiwa
