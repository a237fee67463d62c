"""config.json as transformers before version 5 wrote it, from the new one."""


def _renamed(config):
    config = dict(config)
    config['torch_dtype'] = config.pop('dtype')
    config['transformers_version'] = '4.46.0'
    return config


def flat(*without, kind='rope_type', **more):
    """rope_parameters as rope_theta and rope_scaling; `kind`: what names the
    scaling. `without`: keys that did not exist yet."""

    def old(config):
        config = _renamed(config)
        scaling = dict(config.pop('rope_parameters'))
        config['rope_theta'] = scaling.pop('rope_theta')
        name = scaling.pop('rope_type')
        config['rope_scaling'] = (
            None if name == 'default' else scaling | {kind: name})
        for key in without:
            del config[key]
        return config | more

    return old


def of_gemma3(config):
    config = _renamed(config)
    scaling = config.pop('rope_parameters')
    config['rope_local_base_freq'] = scaling['sliding_attention']['rope_theta']
    full = dict(scaling['full_attention'])
    config['rope_theta'] = full.pop('rope_theta')
    config['rope_scaling'] = full
    del config['layer_types'], config['_sliding_window_pattern']
    return config | dict(sliding_window_pattern=6)


def of_phi3(config):
    config = _renamed(config)
    scaling = config.pop('rope_parameters')
    config['rope_theta'] = scaling['rope_theta']
    config['partial_rotary_factor'] = scaling['partial_rotary_factor']
    config['rope_scaling'] = dict(
        type='longrope', short_factor=scaling['short_factor'],
        long_factor=scaling['long_factor'])
    return config
