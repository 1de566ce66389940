"""The official files: where each is, how large, and its SHA-256.

The checksums are those that TensorFlow Datasets publishes for the image sets, and scikit-learn for California housing; those of
the UCI archives were found alike in at least two independent public repositories each.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Remote:
    """A file that can be downloaded.

    Attributes:
        folder: its place under the data root.
        name: its name there.
        url: its address.
        sha256: of its contents, in hexadecimal.
        size: in bytes, None where it is not known.
    """

    folder: str
    name: str
    url: str
    sha256: str
    size: int | None = None


_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist/"  # the original site no longer serves them
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_UCI = "https://archive.ics.uci.edu/static/public/"

MNIST_TRAIN_IMAGES = Remote(
    "mnist",
    "train-images-idx3-ubyte.gz",
    _MNIST + "train-images-idx3-ubyte.gz",
    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    9_912_422,
)
MNIST_TRAIN_LABELS = Remote(
    "mnist",
    "train-labels-idx1-ubyte.gz",
    _MNIST + "train-labels-idx1-ubyte.gz",
    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    28_881,
)
MNIST_TEST_IMAGES = Remote(
    "mnist",
    "t10k-images-idx3-ubyte.gz",
    _MNIST + "t10k-images-idx3-ubyte.gz",
    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    1_648_877,
)
MNIST_TEST_LABELS = Remote(
    "mnist",
    "t10k-labels-idx1-ubyte.gz",
    _MNIST + "t10k-labels-idx1-ubyte.gz",
    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    4_542,
)
FASHION_MNIST = Remote(
    "fashion_mnist",
    "t10k-images-idx3-ubyte.gz",
    _FASHION + "t10k-images-idx3-ubyte.gz",
    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    4_422_102,
)
CIFAR10 = Remote(
    "cifar10",
    "cifar-10-binary.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    170_052_171,
)
SVHN = Remote(
    "svhn",
    "test_32x32.mat",
    "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
    "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
    64_275_384,
)
EMNIST = Remote(
    "emnist",
    "gzip.zip",
    "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
    "fb9bb67e33772a9cc0b895e4ecf36d2cf35be8b709693c3564cea2a019fcda8e",
    561_753_746,
)

CCPP = Remote(
    "ccpp",
    "combined+cycle+power+plant.zip",
    _UCI + "294/combined+cycle+power+plant.zip",
    "cc7b2a4977c0a44e8221c91d9a7e5746b3c68186cff7e5c61c70af6432b98c7a",
    3_674_852,
)
CASP = Remote(
    "casp",
    "physicochemical+properties+of+protein+tertiary+structure.zip",
    _UCI + "265/physicochemical+properties+of+protein+tertiary+structure.zip",
    "ee6536c8cc415dc50d66bd247af7c9bc95c187ab8a4ea0f1f546b127206c1100",
)
SGEMM = Remote(
    "sgemm",
    "sgemm+gpu+kernel+performance.zip",
    _UCI + "440/sgemm+gpu+kernel+performance.zip",
    "8d3ee0d82708df11b54debc6a4fbade77c604a047f019fa7940413032eb7b096",
    3_186_088,
)
NEWS = Remote(
    "news",
    "online+news+popularity.zip",
    _UCI + "332/online+news+popularity.zip",
    "dba2ae526f62ccef6f2f8efb53b0268319f4d0d2719bb98d88958cfe31d58a22",
)
BLOG = Remote(
    "blog",
    "blogfeedback.zip",
    _UCI + "304/blogfeedback.zip",
    "1ba74e5ad920f7cd037502b2968581cc695146a226a73eff52fe8ad875ed4bcf",
)
YMSD = Remote(
    "ymsd",
    "yearpredictionmsd.zip",
    _UCI + "203/yearpredictionmsd.zip",
    "06f801af323bb7798e800583acce4ea1ed2697ac12c23f4424aea0a7a3d09e11",
    211_011_981,
)
CALIFORNIA = Remote(
    "california",
    "cal_housing.tgz",
    "https://ndownloader.figshare.com/files/5976036",
    "aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
)
