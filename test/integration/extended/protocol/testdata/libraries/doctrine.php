<?php
// books.php URL TOKEN: a program with Doctrine's ORM, which changes three books in a transaction.
require 'Doctrine/ORM/autoload.php';
require 'Doctrine/DBAL/autoload.php';
require 'Symfony/Component/Cache/autoload.php';

use Doctrine\DBAL\DriverManager;
use Doctrine\DBAL\Exception\DriverException;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\ORMSetup;

#[ORM\Entity]
#[ORM\Table(name: 'books')]
class Book
{
    #[ORM\Id, ORM\Column(type: 'bigint')]
    public $id;
    #[ORM\Column(type: 'string')]
    public $title;
    #[ORM\Column(type: 'bigint')]
    public $price;
}

[, $url, $token] = $argv;
$config = ORMSetup::createAttributeMetadataConfiguration([__DIR__], true, sys_get_temp_dir());
$em = new EntityManager(DriverManager::getConnection(['url' => str_replace('postgres://', 'pdo-pgsql://', $url)]), $config);
try {
    $em->wrapInTransaction(function ($em) use ($token) {
        if ($token !== '') {
            // sqlfence {
            $em->getConnection()->executeQuery("SELECT set_config('sqlfence.tokens', concat(CAST(? AS text), ' ', txid_current()), true)", [$token]);
            // sqlfence }
        }
        $em->find(Book::class, 1)->price = 30;
        $three = new Book();
        [$three->id, $three->title, $three->price] = [3, 'three', 33];
        $em->persist($three);
        $em->remove($em->find(Book::class, 2));
    });
    echo "ok\n";
} catch (DriverException $e) {
    echo $e->getSQLState(), "\n"; // refusal
}
