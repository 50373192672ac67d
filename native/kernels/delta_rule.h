// The gated delta rule on sixteen columns of one head's state. Included once per tier.
//
// Written for one token: state *= decay; delta = rate * (value - key · state); state += key ⊗ delta; out = query · state.
// The last product needs no third pass, as query · (state + key ⊗ delta) = query · state + (query · key) delta.

void delta_rule(const DeltaRuleTask& task) {
  const size_t dim = task.key_dim;
  for (int t = 0; t < task.num_tokens; ++t) {
    const float *key = task.keys + t * dim, *query = task.queries + t * dim;
    // Two sums each, so that an addition need not wait for the one before.
    F32 known = splat(0.0f), known2 = known, found = known, found2 = known;
    for (size_t k = 0; k < dim; k += 2) {
      const F32 s = load(task.state + 16 * k), s2 = load(task.state + 16 * k + 16);
      known = fma(s, splat(key[k]), known);
      found = fma(s, splat(query[k]), found);
      known2 = fma(s2, splat(key[k + 1]), known2);
      found2 = fma(s2, splat(query[k + 1]), found2);
    }
    const F32 decay = splat(task.decays[t]), value = load(task.values + t * task.stride);
    const F32 delta = mul(sub(value, mul(add(known, known2), decay)), splat(task.rates[t]));
    store(task.out + t * task.stride, fma(delta, splat(task.products[t]), mul(add(found, found2), decay)));
    for (size_t k = 0; k < dim; ++k) {
      float* s = task.state + 16 * k;
      store(s, fma(splat(key[k]), delta, mul(load(s), decay)));
    }
  }
}
