"""Mixtures of experts, and latent attention."""

from family import Family, bypassed, rope, sizes, zeroed
from old_configs import flat


def latent_sizes(**changes):
    config = sizes(
        num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
        intermediate_size=64, rms_norm_eps=1e-6, moe_intermediate_size=32,
        first_k_dense_replace=1,
        kv_lora_rank=32, q_lora_rank=None, qk_nope_head_dim=32,
        qk_rope_head_dim=32, v_head_dim=32)
    config.update(changes)
    return config


def yarn(**changes):
    values = dict(kind='yarn', factor=4.0, beta_fast=32.0, beta_slow=1.0,
                  original_max_position_embeddings=32, mscale=1.0,
                  mscale_all_dim=1.0)
    values.update(changes)
    return rope(**values)


NO_SHARED = zeroed('shared_experts.down_proj.weight')

FAMILIES = [
    Family('mixtral', 'MixtralConfig',
           sizes(num_local_experts=4, num_experts_per_tok=2,
                 num_attention_heads=2, num_key_value_heads=1,
                 sliding_window=None, **rope(1000000.0)),
           {'two experts of four': dict(num_experts_per_tok=1)}, 'llama',
           old_config=flat()),
    Family('qwen3moe', 'Qwen3MoeConfig',
           sizes(intermediate_size=96, moe_intermediate_size=32, num_experts=6,
                 num_experts_per_tok=3, norm_topk_prob=True, mlp_only_layers=[],
                 decoder_sparse_step=1, rms_norm_eps=1e-6,
                 num_attention_heads=2, num_key_value_heads=1,
                 **rope(1000000.0)),
           {'weights normalised': dict(norm_topk_prob=False),
            'q norm': bypassed('q_norm'), 'k norm': bypassed('k_norm')},
           'qwen3moe', shard_bytes=50000),
    Family('olmoe', 'OlmoeConfig',
           sizes(head_dim=None, hidden_size=64, num_attention_heads=2,
                 num_key_value_heads=2,
                 num_experts=3, num_experts_per_tok=2,
                 norm_topk_prob=False, tie_word_embeddings=False, **rope()),
           {'weights not normalised': dict(norm_topk_prob=True),
            'q norm': bypassed('q_norm'), 'k norm': bypassed('k_norm')},
           'olmoe'),
    Family('granitemoe', 'GraniteMoeConfig',
           sizes(head_dim=None, hidden_size=64, num_attention_heads=2,
                 num_key_value_heads=1, num_local_experts=4,
                 num_experts_per_tok=2, embedding_multiplier=6.0,
                 logits_scaling=4.0, residual_multiplier=0.375,
                 attention_multiplier=0.25, tie_word_embeddings=True,
                 **rope()),
           {'two experts of four': dict(num_experts_per_tok=1),
            'residual scale': dict(residual_multiplier=1.0)},
           'granitemoe'),
    Family('deepseek-v2-lite', 'DeepseekV2Config',
           latent_sizes(n_routed_experts=4, num_experts_per_tok=2,
                        n_shared_experts=2, n_group=1, topk_group=1,
                        topk_method='greedy', scoring_func='softmax',
                        routed_scaling_factor=1.0, norm_topk_prob=False,
                        **yarn(mscale=0.707, mscale_all_dim=0.707)),
           {'shared experts': NO_SHARED,
            'yarn scaling': rope(),
            'yarn score scale': yarn(mscale=0.0, mscale_all_dim=0.0),
            'latent norm': bypassed('kv_a_layernorm')},
           'deepseek2', gguf_split_latent=False),
    Family('deepseek-v2', 'DeepseekV2Config',
           latent_sizes(n_routed_experts=8, num_experts_per_tok=3,
                        n_shared_experts=1, n_group=4, topk_group=2,
                        topk_method='group_limited_greedy',
                        scoring_func='softmax', routed_scaling_factor=4.0,
                        norm_topk_prob=False, q_lora_rank=32,
                        **yarn(mscale=1.5, mscale_all_dim=0.75)),
           {'groups': dict(topk_method='greedy'),
            'routed scale': dict(routed_scaling_factor=1.0),
            'shared experts': NO_SHARED,
            'yarn magnitude': yarn(mscale=0.75, mscale_all_dim=0.75),
            'query norm': bypassed('q_a_layernorm')},
           'deepseek2',
           gguf_config=yarn(mscale=0.75, mscale_all_dim=0.75),
           old_config=flat('head_dim', kind='type')),
    Family('deepseek-v3', 'DeepseekV3Config',
           latent_sizes(n_routed_experts=8, num_experts_per_tok=3,
                        n_shared_experts=1, n_group=4, topk_group=2,
                        topk_method='noaux_tc', scoring_func='sigmoid',
                        routed_scaling_factor=2.5, norm_topk_prob=True,
                        q_lora_rank=32, num_mtp_layers=0, **yarn()),
           {'groups': dict(n_group=1, topk_group=1),
            'selection bias': zeroed('e_score_correction_bias'),
            'weights normalised': dict(norm_topk_prob=False),
            'routed scale': dict(routed_scaling_factor=1.0),
            'shared experts': NO_SHARED,
            'yarn score scale': yarn(mscale=0.0, mscale_all_dim=0.0),
            'interleaved rope': dict(rope_interleave=False)},
           'deepseek2',
           old_config=flat('head_dim', 'qk_head_dim', 'rope_interleave',
                           kind='type')),
]
