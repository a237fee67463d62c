"""Keys of a GGUF, as llama.cpp's converter chooses them for a configuration."""

import math

import gguf

import tiny_tokenizer
from family import END_OF_TEXT, PADDING, TURN_END


def add_all(writer, family, config):
    """`config`: config.json as a dict."""
    writer.add_type('model')
    writer.add_name('tiny-random-' + family.name)
    writer.add_block_count(config['num_hidden_layers'])
    writer.add_context_length(config['max_position_embeddings'])
    writer.add_embedding_length(config['hidden_size'])
    writer.add_feed_forward_length(config['intermediate_size'])
    writer.add_head_count(config['num_attention_heads'])
    writer.add_layer_norm_rms_eps(config['rms_norm_eps'])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    if family.architecture in ('llama', 'smollm3', 'granite', 'granitemoe',
                               'deepseek2'):
        writer.add_vocab_size(config['vocab_size'])
    if family.architecture == 'deepseek2':
        _add_latent(writer, family, config)
    else:
        _add_heads(writer, family, config)
    _add_windows(writer, config)
    _add_caps_and_scales(writer, family, config)
    _add_experts(writer, config)
    _add_rope(writer, family, config)
    _add_tokenizer(writer)


def _add_heads(writer, family, config):
    writer.add_head_count_kv(config['num_key_value_heads'])
    head_dim = (config.get('head_dim') or
                config['hidden_size'] // config['num_attention_heads'])
    # Files from before transformers 5 lack them where they are the quotient.
    if 'head_dim' in config and family.gguf_head_sizes:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    if family.architecture in ('llama', 'smollm3', 'granite', 'granitemoe'):
        writer.add_rope_dimension_count(head_dim)
    elif family.architecture == 'phi3':
        rotated = config['rope_parameters'].get('partial_rotary_factor', 1.0)
        writer.add_rope_dimension_count(int(rotated * head_dim))


def _add_latent(writer, family, config):
    rotated = config['qk_rope_head_dim']
    key = config['qk_nope_head_dim'] + rotated
    latent = config['kv_lora_rank']
    if family.gguf_split_latent:
        writer.add_head_count_kv(1)
        writer.add_key_length(latent + rotated)
        writer.add_value_length(latent)
        writer.add_key_length_mla(key)
        writer.add_value_length_mla(config['v_head_dim'])
    else:
        writer.add_head_count_kv(config['num_attention_heads'])
        writer.add_key_length(key)
        writer.add_value_length(config['v_head_dim'])
    writer.add_kv_lora_rank(latent)
    if config['q_lora_rank']:
        writer.add_q_lora_rank(config['q_lora_rank'])
    writer.add_rope_dimension_count(rotated)


def _add_windows(writer, config):
    # llama.cpp's "llama" architecture knows no window, so a Mistral file has
    # none; Phi-3 files have the key, of 0 without a window.
    if config['model_type'] in ('gemma2', 'gemma3_text'):
        writer.add_sliding_window(config['sliding_window'])
    elif config['model_type'] == 'phi3':
        writer.add_sliding_window(config.get('sliding_window') or 0)


def _add_caps_and_scales(writer, family, config):
    if config.get('attn_logit_softcapping'):
        writer.add_attn_logit_softcapping(config['attn_logit_softcapping'])
    if config.get('final_logit_softcapping'):
        writer.add_final_logit_softcapping(config['final_logit_softcapping'])
    if family.architecture in ('granite', 'granitemoe'):
        writer.add_attention_scale(config['attention_multiplier'])
        writer.add_embedding_scale(config['embedding_multiplier'])
        writer.add_residual_scale(config['residual_multiplier'])
        writer.add_logit_scale(config['logits_scaling'])


def _add_experts(writer, config):
    count = next((config[key] for key in
                  ('n_routed_experts', 'num_local_experts', 'num_experts')
                  if config.get(key)), None)
    if count is None:
        return
    writer.add_expert_count(count)
    writer.add_expert_used_count(config['num_experts_per_tok'])
    if config.get('moe_intermediate_size'):
        writer.add_expert_feed_forward_length(config['moe_intermediate_size'])
    if not config['model_type'].startswith('deepseek'):
        return
    if config.get('n_group'):
        writer.add_expert_group_count(config['n_group'])
        writer.add_expert_group_used_count(config['topk_group'])
    gating = {'softmax': gguf.ExpertGatingFuncType.SOFTMAX,
              'sigmoid': gguf.ExpertGatingFuncType.SIGMOID}
    writer.add_expert_gating_func(gating[config['scoring_func']])
    writer.add_leading_dense_block_count(config['first_k_dense_replace'])
    writer.add_expert_shared_count(config['n_shared_experts'])
    writer.add_expert_weights_scale(config['routed_scaling_factor'])
    if config['norm_topk_prob']:
        writer.add_expert_weights_norm(True)


def _add_rope(writer, family, config):
    rope = config['rope_parameters']
    if 'sliding_attention' in rope:
        writer.add_rope_freq_base_swa(rope['sliding_attention']['rope_theta'])
    rope = rope.get('full_attention', rope)
    if family.architecture != 'gemma2':
        writer.add_rope_freq_base(rope['rope_theta'])
    kind = rope['rope_type']
    if kind == 'linear':
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope['factor'])
    elif kind == 'yarn':
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope['factor'])
        writer.add_rope_scaling_orig_ctx_len(
            rope['original_max_position_embeddings'])
        if 'beta_fast' in rope:
            writer.add_rope_scaling_yarn_beta_fast(rope['beta_fast'])
            writer.add_rope_scaling_yarn_beta_slow(rope['beta_slow'])
        if 'mscale_all_dim' in rope:
            # A tenth of it, for historical reasons; DeepSeek-V2 only.
            writer.add_rope_scaling_yarn_log_mul(0.1 * rope['mscale_all_dim'])
    if family.architecture == 'phi3':
        _add_long_rope(writer, config, rope)


def _add_long_rope(writer, config, rope):
    original = (rope.get('original_max_position_embeddings') or
                config['original_max_position_embeddings'])
    writer.add_rope_scaling_orig_ctx_len(original)
    if rope['rope_type'] != 'longrope':
        return
    factor = config['max_position_embeddings'] / original
    writer.add_rope_scaling_attn_factors(
        math.sqrt(1 + math.log(factor) / math.log(original))
        if factor > 1 else 1.0)


def _add_tokenizer(writer):
    texts = tiny_tokenizer.token_texts()
    special = len(tiny_tokenizer.SPECIAL)
    writer.add_tokenizer_model('gpt2')
    writer.add_tokenizer_pre('gpt-2')
    writer.add_token_list(texts)
    writer.add_token_types(
        [gguf.TokenType.CONTROL] * special +
        [gguf.TokenType.NORMAL] * (len(texts) - special))
    writer.add_token_merges([' '.join(pair) for pair in tiny_tokenizer.MERGES])
    writer.add_bos_token_id(END_OF_TEXT)
    writer.add_eos_token_id(TURN_END)
    writer.add_pad_token_id(PADDING)
    writer.add_chat_template(tiny_tokenizer.CHAT_TEMPLATE)
